/** The worker API of the database, for one queue. */
import type pg from "pg";

import { call, callTimeout } from "./database.js";
import type { Claimed, Delivery, Outcome } from "./delivery.js";

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

/** The calls about one queue, with a pool for work and one for leases. */
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

  report(outcomes: Outcome[]): Promise<Accepted[]> {
    return call(this.pool, "select pawl.report_steps($1::text, $2::text::jsonb, $3::text)::text as answer", [
      this.queue,
      reports(outcomes),
      this.worker,
    ]);
  }

  reportAndClaim(outcomes: Outcome[], quantity: number): Promise<{ reported: Accepted[]; claimed: Claimed[] }> {
    return call(this.pool, "select pawl.report_and_claim_steps($1::text, $2::text::jsonb, $3::integer, $4::text)::text as answer", [
      this.queue,
      reports(outcomes),
      quantity,
      this.worker,
    ]);
  }

  extend(leases: Delivery[], length: number, timeout = callTimeout): Promise<Lease[]> {
    const values = [this.queue, fences(leases), Math.round(length), this.worker];
    return call(this.beats, "select pawl.extend_leases($1::text, $2::text::jsonb, $3::bigint, $4::text)::text as answer", values, timeout);
  }

  async release(leases: Delivery[]): Promise<void> {
    // Handlers may hold all of the pool's connections.
    await call(this.beats, "select pawl.release_steps($1::text, $2::text::jsonb, $3::text)::text as answer", [
      this.queue,
      fences(leases),
      this.worker,
    ]);
  }
}

function reports(outcomes: Outcome[]): string {
  return `[${outcomes.map((o) => o.json()).join(",")}]`;
}

function fences(leases: Delivery[]): string {
  return JSON.stringify(leases.map((d) => d.fence()));
}
