import type { Calls } from "./calls.js";
import type { Delivery } from "./delivery.js";
import { Cancelled, LeaseLost } from "./errors.js";
import type { Lane } from "./lane.js";
import { textOf, type Log } from "./log.js";
import { pause } from "./look.js";
import { sqlState } from "./sqlstate.js";

// Milliseconds between looks for leases to extend.
const beatEvery = 100;

/**
 * Extends the leases of what a lane holds, each when a third of it is over, on a connection of its own. A clock beside it ends
 * leases by time alone, so that a database which does not answer keeps no handler from hearing that its step is somebody else's.
 */
export class Heart {
  private stopped = false;
  private beating: Promise<void> = Promise.resolve();
  private clock: NodeJS.Timeout | undefined;
  private looked = 0; // by the clock

  constructor(
    private readonly lane: Lane,
    private readonly calls: Calls,
    private readonly log: Log,
  ) {}

  start(): void {
    this.beating = this.run();
    this.clock = setInterval(() => this.expire(performance.now()), beatEvery);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.clock);
    await this.beating;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      void this.lane.freeWaiting(); // no lease waits for it
      this.lane.reportApart(performance.now());
      for (const [length, due] of this.due(performance.now())) await this.extend(due, length);
      await pause(beatEvery);
    }
  }

  private expire(now: number): void {
    // When something has held the thread, an answer that extends the lease may wait to be read.
    const held = now - this.looked > 3 * beatEvery;
    this.looked = now;
    if (held) return;
    for (const d of this.lane.held.values()) {
      // Of one that has ended, or whose transaction has the message, the report tells.
      if (d.beatAt > 0 && now >= d.leaseFrom + d.lease && !d.ended && !d.inTransaction) this.lose(d);
    }
  }

  private lose(d: Delivery): void {
    d.beatAt = 0;
    d.abort(new LeaseLost());
    this.log.warn("extending lease: it is lost, the handler is told to stop", d.where());
  }

  /** What is to be extended, by length of lease. */
  private due(now: number): Map<number, Delivery[]> {
    const due = new Map<number, Delivery[]>();
    for (const d of this.lane.held.values()) {
      if (d.beatAt > 0 && now >= d.beatAt) due.set(d.lease, [...(due.get(d.lease) ?? []), d]);
    }
    return due;
  }

  /** Makes one call for leases of one length, and tells handlers whose work is no longer wanted. */
  private async extend(due: Delivery[], length: number): Promise<void> {
    const asked = performance.now();
    const status = new Map<number, string>();
    let failed = false;
    try {
      for (const lease of await this.calls.extend(due, length, Math.max(length / 3, 1000))) status.set(lease.msg_id, lease.status);
    } catch (problem) {
      if (due.length > 1 && sqlState(problem) === "55P03") {
        // One of them is locked, by a transaction that completes its step or by whatever such a one left behind.
        for (const d of due) await this.extend([d], length);
        return;
      }
      failed = true;
      if (!this.stopped) this.log.warn("extending leases: it failed, trying again", { queue: this.lane.queue, count: due.length, error: textOf(problem) });
    }
    const now = performance.now();
    const soon = now + Math.min(length / 10, 1000);
    for (const d of due) {
      if (this.lane.held.get(d.body.msg_id) !== d || d.beatAt === 0) continue; // reported meanwhile, or its lease was over
      const answer = status.get(d.body.msg_id);
      if (failed && now - d.leaseFrom < length) {
        d.beatAt = soon;
      } else if (answer === "extended") {
        d.leaseFrom = asked;
        d.beatAt = asked + length / 3;
      } else if (d.ended || d.inTransaction) {
        // A report or a transaction has the message locked, or gone: it tells. An ended one keeps trying.
        d.beatAt = soon;
      } else if (answer === "cancelled") {
        // The lease goes on until the handler has returned: its report takes the message away.
        d.leaseFrom = asked;
        d.beatAt = asked + length / 3;
        d.abort(new Cancelled());
      } else {
        this.lose(d);
      }
    }
  }
}
