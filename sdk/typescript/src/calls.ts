/** The worker API of the database, for one queue. */
import type pg from "pg";

import { call, callTimeout } from "./database.js";
import type { Claimed, Delivery, Outcome } from "./delivery.js";

// Milliseconds that a call waits for a message, or a row of the user's, that somebody has locked: one that carries many
// reports, and one about leases, since those that are with it are not to end for that.
const reportWait = 5_000;
const leaseWait = 50;

/** The database's answer to one report. */
export interface Accepted {
  msg_id: number;
  accepted: boolean;
}

/** The database's answer about one lease. */
export interface Lease {
  msg_id: number;
  status: "extended" | "cancelled" | "lost";
}

/** The calls about one queue, with a pool for work and one for leases. Over a lock they throw SQLSTATE 55P03. */
export class Calls {
  constructor(
    private readonly queue: string,
    private readonly worker: string,
    private readonly pool: pg.Pool,
    private readonly beats: pg.Pool,
  ) {}

  claim(quantity: number): Promise<Claimed[]> {
    return call(this.pool, "select pawl.claim_steps($1::text, $2::integer, $3::text)::text as answer", [this.queue, quantity, this.worker]);
  }

  /** wait is for locks, in milliseconds. */
  report(outcomes: Outcome[], wait = reportWait): Promise<Accepted[]> {
    const values = [ms(wait), this.queue, reports(outcomes), this.worker];
    return call(this.pool, waiting("pawl.report_steps($2::text, $3::text::jsonb, $4::text)"), values);
  }

  reportAndClaim(outcomes: Outcome[], quantity: number): Promise<{ reported: Accepted[]; claimed: Claimed[] }> {
    const values = [ms(reportWait), this.queue, reports(outcomes), quantity, this.worker];
    return call(this.pool, waiting("pawl.report_and_claim_steps($2::text, $3::text::jsonb, $4::integer, $5::text)"), values);
  }

  /** Times are in milliseconds. */
  extend(leases: Delivery[], length: number, timeout = callTimeout): Promise<Lease[]> {
    const values = [ms(leaseWait), this.queue, fences(leases), Math.round(length), this.worker];
    return call(this.beats, waiting("pawl.extend_leases($2::text, $3::text::jsonb, $4::bigint, $5::text)"), values, timeout);
  }

  async release(leases: Delivery[]): Promise<void> {
    // Handlers may hold all of the pool's connections.
    await call(this.beats, waiting("pawl.release_steps($2::text, $3::text::jsonb, $4::text)"), [ms(leaseWait), this.queue, fences(leases), this.worker]);
  }
}

/**
 * A call that the database itself ends when it has waited for a lock for as long as its first value says: the backend of a
 * call that is given up here waits on. A case has an order; the setting ends with the statement.
 */
function waiting(what: string): string {
  return `select case when set_config('lock_timeout', $1::text, true) is not null then ${what}::text end as answer`;
}

function ms(wait: number): string {
  return `${wait}ms`;
}

function reports(outcomes: Outcome[]): string {
  return `[${outcomes.map((o) => o.json()).join(",")}]`;
}

function fences(leases: Delivery[]): string {
  return JSON.stringify(leases.map((d) => d.fence()));
}
