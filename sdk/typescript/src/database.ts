/** Calls to the database that never hang for ever, and what to do about their errors. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import pg from "pg";

import { ConfigError } from "./errors.js";
import { textOf } from "./log.js";

/** Milliseconds of one call, a third of the default lease: a connection that has silently died is noticed in time. */
export const callTimeout = 10_000;
const connectTimeout = 10_000;

/** Runs statements: a pg.Pool, pg.Client or pg.PoolClient, or anything that looks like one. */
export interface Queryable {
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>;
}

/** The URL given, else PAWL_DATABASE_URL, else that of a `pawl dev` that runs on this machine. */
export function findUrl(url?: string): string {
  const named = url || process.env["PAWL_DATABASE_URL"];
  if (named) return named;
  try {
    const found = readFileSync(join(cacheFolder(), `dev-${process.getuid?.()}.url`), "utf8").trim();
    if (found) return found;
  } catch {
    // none runs
  }
  throw new ConfigError(
    "no database is named: start a private one with `pawl dev`, or name yours: export PAWL_DATABASE_URL=postgres://user@host/database",
  );
}

function cacheFolder(): string {
  if (process.env["PAWL_CACHE_DIR"]) return process.env["PAWL_CACHE_DIR"];
  if (process.getuid?.() === 0) return "/var/cache/pawl";
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", "pawl");
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "pawl");
}

/** Settings of a connection: the URL's, and what keeps a dead one from being waited for. */
export function connectionConfig(url: string, name: string): pg.PoolConfig {
  try {
    new pg.Client({ connectionString: url }); // reads it
  } catch (problem) {
    throw new ConfigError(`reading the database URL: ${textOf(problem)}; it looks like postgres://user@host:5432/database`);
  }
  return {
    connectionString: url,
    fallback_application_name: name.slice(0, 63),
    keepAlive: true,
    connectionTimeoutMillis: connectTimeout,
  };
}

/** Settings of a pool for connections beside it. The pool hides its password, also from a spread: the copy has it, as hidden. */
export function besides(options: pg.PoolConfig, more: pg.PoolConfig = {}): pg.PoolConfig {
  const copy: pg.PoolConfig = { connectionTimeoutMillis: connectTimeout, ...options, ...more };
  return Object.defineProperty(copy, "password", { value: options.password, enumerable: false, configurable: true, writable: true });
}

/** A pool whose idle connections may be lost without anybody noticing: the next call opens another. */
export function openPool(url: string, name: string, size: number): pg.Pool {
  const pool = new pg.Pool({ ...connectionConfig(url, name), max: size });
  pool.on("error", () => {});
  return pool;
}

/** Runs a statement and returns its rows. Over the timeout the connection is given up. */
export async function rows(pool: pg.Pool, text: string, values: unknown[], timeout = callTimeout): Promise<any[]> {
  const query = { text, values, query_timeout: timeout } as pg.QueryConfig;
  return (await pool.query(query)).rows;
}

/** Runs a statement that gives one JSON text, and returns what it says. */
export async function call<T>(pool: pg.Pool, text: string, values: unknown[], timeout = callTimeout): Promise<T> {
  return JSON.parse((await rows(pool, text, values, timeout))[0].answer) as T;
}

/** The SQLSTATE of an error of the database; codes of the system, such as EPIPE, have no digit. */
export function sqlState(problem: unknown): string | undefined {
  const code = (problem as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** The SQLSTATE when the database refused what a call carried, so that repeating it is useless. */
export function refusesData(problem: unknown): string | undefined {
  const state = sqlState(problem);
  return state && (state === "PW016" || state.startsWith("22") || state.startsWith("54")) ? state : undefined;
}

/** The text of a database error with what to do about it. */
export function explain(problem: unknown): string {
  const text = textOf(problem) || String((problem as { code?: unknown } | null)?.code ?? problem);
  switch (sqlState(problem)) {
    case "42883":
    case "3F000":
    case "42P01":
      return `${text}: the database lacks Pawl's functions, or an earlier version made them: run \`pawl migrate\``;
    case "42501":
      return `${text}: the owner grants a queue with: select pawl.grant_queue(role, queue)`;
  }
  const hint = (problem as { hint?: unknown } | null)?.hint;
  return typeof hint === "string" && hint ? `${text}: ${hint}` : text;
}

/** The same for a first call: where it went and what to look at, when the database could not be reached. Without a secret. */
export function explainReach(problem: unknown, connection: pg.PoolConfig): string {
  const state = sqlState(problem);
  if (state && !/^(08|28|3D|53|57)/.test(state)) return explain(problem);
  const { database, host, port } = new pg.Client(connection);
  const text = `reaching the database ${database ?? ""} at ${host}:${port}: ${explain(problem)}`;
  if (state && !/^(28|3D)/.test(state)) return text;
  return `${text}: ${state ? "" : "is Postgres running there? "}check PAWL_DATABASE_URL or the URL in the code; \`pawl dev\` starts a private one`;
}
