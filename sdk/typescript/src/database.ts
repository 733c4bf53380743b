/** Calls to the database that never hang for ever. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

import pg from "pg";

import { ConfigError } from "./errors.js";
import { textOf } from "./log.js";

/** Milliseconds of one call, a third of the default lease: a connection that has silently died is noticed in time. */
export const callTimeout = 10_000;
const connectTimeout = 10_000;

/** A connection with a transaction of the caller's: a pg.Client or pg.PoolClient, or anything that looks like one. */
export interface Queryable {
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>;
  /** A pool has it. Each of a pool's statements may run on another connection, and commits there. */
  readonly totalCount?: never;
}

/** Refuses a pool where a transaction is wanted: what it is given would be committed at once, whatever becomes of the transaction. */
export function refusePool(doing: string, client: Queryable): void {
  if (!("totalCount" in client)) return;
  throw new ConfigError(
    `${doing}: this is a pool, whose statements run outside of your transaction: give the client that began it, of "const client = await pool.connect()"`,
  );
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
