/** What an error of a call to the database says, and what to do about it. */
import pg from "pg";

import { textOf } from "./log.js";

/** The SQLSTATE of an error that the server sent. Those of the system, such as ECONNREFUSED, have a code too, and no severity. */
export function sqlState(problem: unknown): string | undefined {
  const { code, severity } = (problem ?? {}) as { code?: unknown; severity?: unknown };
  return typeof severity === "string" && typeof code === "string" ? code : undefined;
}

/** The SQLSTATE when the database refused what a call carried, so that repeating it is useless. */
export function refusesData(problem: unknown): string | undefined {
  const state = sqlState(problem);
  return state && (state === "PW016" || state.startsWith("22") || state.startsWith("54")) ? state : undefined;
}

// These tell of a state that the database is in, not of what a call carried: no right, no function or table, not ready.
const states = ["25006", "3F000", "42501", "42883", "42P01", "55P03", "PW010"];
const classes = ["08", "28", "40", "53", "57", "58"];

/**
 * Whether the database refused a call for what one of its reports asked of it: then the others go through without that one.
 * A report with an entity claim moves a row of the user's, whose constraints and triggers may raise anything.
 */
export function refusesReport(problem: unknown): boolean {
  const state = sqlState(problem);
  return state !== undefined && !states.includes(state) && !classes.includes(state.slice(0, 2));
}

/** Whether a call ended while it waited, most likely for one message that somebody has locked. */
export function isLocked(problem: unknown): boolean {
  return ["55P03", "57014"].includes(sqlState(problem) ?? "");
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
