import type { Accepted, Calls } from "./calls.js";
import type { Outcome } from "./delivery.js";
import { types } from "./failure.js";
import type { Lane } from "./lane.js";
import type { Log } from "./log.js";
import { pause } from "./look.js";
import { explain, refusesData, refusesReport } from "./sqlstate.js";

// Bounds of the milliseconds between calls while they fail.
export const minBackoff = 50;
export const maxBackoff = 5_000;
// Milliseconds for locks at the first try of a report that was set aside; each later one may wait twice as long, up to lastWait.
const firstWait = 1_000;
const lastWait = 5_000;
// Bounds the refused reports that a lane keeps. Of those beyond it the leases end.
const maxApart = 1_000;

/**
 * Reports that are out of their lane's way, each reported for itself, with pauses of its own: the database refuses one of
 * them, or one waits for a lock that somebody holds. Their leases go on, and no result is lost once what was in the way is
 * gone.
 */
export class Apart {
  private outcomes: Outcome[] = [];
  private trying = false;

  constructor(
    private readonly lane: Lane,
    private readonly calls: Calls,
    private readonly log: Log,
  ) {}

  /** problem is of a call that carried this one outcome alone, undefined when others were with it. */
  add(outcomes: Outcome[], problem?: unknown): void {
    for (const o of outcomes) {
      if (this.outcomes.length >= maxApart && refusesReport(problem)) {
        this.lane.letGo(o.delivery);
        this.log.error("reporting step: too many reports are refused, this one is dropped", { ...o.delivery.where(), error: explain(problem) });
        continue;
      }
      if (problem !== undefined) {
        o.retryAt = performance.now() + Math.min(minBackoff * 2 ** o.tries, maxBackoff);
        if (o.tries++ === 0) this.log.error("reporting step: it failed, it is tried again while others go on", { ...o.delivery.where(), error: explain(problem) });
      }
      o.delivery.apart = true;
      this.outcomes.push(o);
    }
  }

  /** Reports what is due, one by one; it returns at once. */
  report(now: number): void {
    if (this.trying) return;
    const due = this.outcomes.filter((o) => now >= o.retryAt);
    if (due.length === 0) return;
    this.outcomes = this.outcomes.filter((o) => now < o.retryAt);
    this.trying = true;
    void this.tryAll(due);
  }

  private async tryAll(due: Outcome[]): Promise<void> {
    for (const o of due) {
      try {
        this.lane.settle([o], await this.alone(o, Math.min(firstWait * 2 ** o.tries, lastWait)));
      } catch (problem) {
        this.add([o], problem);
      }
    }
    this.trying = false;
  }

  /** Reports one outcome, a failure in its place when the database refuses it for its content. wait is for locks, in milliseconds. */
  async alone(o: Outcome, wait = firstWait): Promise<Accepted[]> {
    try {
      return await this.calls.report([o], wait);
    } catch (problem) {
      const code = refusesData(problem);
      if (!code || o.replaced) throw problem;
      this.replace(o, code);
      return await this.calls.report([o], wait);
    }
  }

  private replace(o: Outcome, code: string): void {
    this.log.error("reporting step: the database refuses the result, a failure is reported in its place", { ...o.delivery.where(), sqlstate: code });
    const message = `the database refuses the result (SQLSTATE ${code}): it is over 1 MiB as the database writes it, or holds a value that jsonb cannot store`;
    o.replaced = true;
    o.report = { status: "failed", error: { type: types.invalidResult, message, retryable: false } };
  }

  /**
   * Lets what was not tried for itself yet be tried, unless time is over. Where that fails the lease ends: giving the step
   * back would run its handler again. Returns how many are left.
   */
  async windUp(over: () => boolean): Promise<number> {
    while ((this.trying || this.outcomes.some((o) => o.tries === 0)) && !over()) await pause(5);
    return this.outcomes.splice(0).length;
  }
}
