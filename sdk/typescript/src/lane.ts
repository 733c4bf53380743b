import { Ahead, maxWait } from "./ahead.js";
import { Apart, maxBackoff, minBackoff } from "./apart.js";
import type { Accepted, Calls } from "./calls.js";
import { Delivery, Outcome, type Claimed } from "./delivery.js";
import { LeaseLost, Stopping, TimedOut } from "./errors.js";
import { types } from "./failure.js";
import { clean } from "./json.js";
import { textOf, type Log } from "./log.js";
import { Alarm, Look } from "./look.js";
import { explain, isLocked, refusesReport } from "./sqlstate.js";

// Bounds of the milliseconds that the first ended handler waits for others to be reported with, while others are at work: a
// quarter of what the last call took, so that a busy database gets fewer and fuller calls.
const minLinger = 1;
const maxLinger = 10;
// Bounds of one call.
const maxReports = 200;
const maxReportBytes = 4 << 20;
// How often a step whose handler this worker does not have is put back for others, before it is reported as failed.
const unknownDeliveries = 5;

/** A user's handler without its types: the result as JSON text. */
export type Run = (delivery: Delivery) => Promise<string>;

/** What a lane needs. */
export interface LaneConfig {
  queue: string;
  slots: number;
  worker: string;
  handlers: ReadonlyMap<string, Run>;
  calls: Calls;
  idle: () => number;
  log: Log;
  logErrors: boolean;
}

/**
 * One queue's way through the worker. converse talks to the database, one call at a time: it reports what has ended since
 * the last call, and claims for the slots that are free. It alone claims, so a slot that it counts as free stays free
 * until the claim is back. While handlers are quicker than calls it also claims for the slots that will be free by then.
 */
export class Lane {
  readonly queue: string;
  readonly worker: string;
  /** Claimed, and neither reported nor given back, by message id. */
  readonly held = new Map<number, Delivery>();
  /** No more claims. */
  stopping = false;
  private readonly atWork = new Set<Delivery>(); // whose handlers have not returned
  private waiting: Delivery[] = []; // claimed ahead, for the next free slots
  private ended: Outcome[] = []; // of handlers that returned, not reported yet
  private linger = minLinger;
  private lingerFrom = 0; // when the first of them returned, or the last call did
  private retryAt = 0; // no call before this: the last one failed
  private backoff = 0;
  private quit = false;
  private dead = false; // no more calls: stopping has taken too long
  private readonly ahead = new Ahead();
  private readonly look: Look;
  private readonly apart: Apart;
  private readonly alarm = new Alarm();
  private readonly unknown = new Set<string>();
  private conversation: Promise<void> = Promise.resolve();
  /** Steps that ended here, for those who measure. */
  done = 0;

  constructor(private readonly config: LaneConfig) {
    this.queue = config.queue;
    this.worker = config.worker;
    this.look = new Look(config.idle);
    this.apart = new Apart(this, config.calls, config.log);
  }

  start(): void {
    this.conversation = this.converse();
  }

  /** Makes the lane look for work now. */
  wake(): void {
    this.look.woken();
    this.alarm.ring();
  }

  /** Whether nothing is at work and nothing is left to report. */
  get idle(): boolean {
    return this.atWork.size === 0 && this.ended.length === 0;
  }

  /** Whether no handler is at work. */
  get quiet(): boolean {
    return this.atWork.size === 0;
  }

  /** No more claims; what waits for a slot goes to other workers. */
  async stopClaiming(): Promise<void> {
    this.stopping = true;
    this.alarm.ring();
    await this.giveBack(this.takeWaiting(Infinity));
  }

  /** Tells all handlers to stop. */
  interrupt(): void {
    for (const d of this.held.values()) if (!d.ended) d.abort(new Stopping());
  }

  /** Says which handlers have not returned, though their signals were aborted. */
  leaveBehind(): void {
    if (this.atWork.size === 0) return;
    const handlers = [...new Set([...this.atWork].map((d) => d.body.handler))].sort().join(", ");
    this.config.log.warn("stopping: handlers ignore their signals and are left behind; what they keep open keeps the process going, process.exit() ends it", { queue: this.queue, count: this.atWork.size, handlers });
  }

  /** Reports what has ended, gives back the rest, and ends the conversation. */
  async windUp(): Promise<void> {
    this.quit = true;
    this.alarm.ring();
    await this.conversation;
    while (this.ended.length > 0 && !this.dead) {
      await this.talk(this.takeEnded(), 0);
      await this.alarm.wait(this.retryAt - performance.now());
    }
    const ended = new Set(this.ended.map((o) => o.delivery));
    const back = [...this.held.values()].filter((d) => !d.apart && !ended.has(d));
    back.forEach((d) => this.letGo(d));
    if (back.length > 0) this.config.log.info("stopping: giving unfinished steps back", { queue: this.queue, count: back.length });
    if (!this.dead) await this.giveBack(back);
    const left = this.ended.length + (await this.apart.windUp(() => this.dead));
    if (left > 0) this.config.log.warn("stopping: some results could not be reported, their steps come back when their leases end", { queue: this.queue, count: left });
    this.held.clear();
  }

  /** No more calls. */
  die(): void {
    this.dead = true;
    this.alarm.ring();
  }

  /** Reports what was set aside and is due. */
  reportApart(now: number): void {
    this.apart.report(now);
  }

  /** Gives back what waits for its slot for too long. */
  async freeWaiting(): Promise<void> {
    await this.giveBack(this.takeWaiting(performance.now() - maxWait));
  }

  private async converse(): Promise<void> {
    while (!this.quit) {
      const { outcomes, quantity, wait } = this.plan(performance.now());
      if (outcomes.length > 0 || quantity > 0) await this.talk(outcomes, quantity);
      else await this.alarm.wait(wait);
    }
  }

  /** Decides what to say now, or how long to wait. */
  private plan(now: number): { outcomes: Outcome[]; quantity: number; wait: number } {
    if (now < this.retryAt) return { outcomes: [], quantity: 0, wait: this.retryAt - now };
    const free = this.stopping ? 0 : this.config.slots - this.atWork.size - this.waiting.length; // less than none with what waits
    let wait = 60_000; // until rung
    // What has ended takes the claim along: only without it a claim goes out for itself.
    if (this.ended.length > 0) wait = this.atWork.size > 0 && this.ended.length < maxReports ? this.lingerFrom + this.linger - now : 0;
    else if (free > 0) wait = this.look.at - now;
    if (wait > 0) return { outcomes: [], quantity: 0, wait };
    const outcomes = this.takeEnded();
    // With a backlog of reports, reporting comes first.
    const quantity = this.stopping || this.ended.length > 0 ? 0 : Math.max(free + this.ahead.count(this.config.slots), 0);
    return { outcomes, quantity, wait: 0 };
  }

  /** Takes as many outcomes as one call may carry. */
  private takeEnded(): Outcome[] {
    let count = 0;
    let size = 0;
    for (const o of this.ended) {
      size += o.size();
      if (count === maxReports || (count > 0 && size > maxReportBytes)) break;
      count++;
    }
    return this.ended.splice(0, count);
  }

  /**
   * Makes one call and acts on the answer. What could not be said is said again: every call can be repeated blindly, a
   * report that had arrived after all is not accepted twice.
   */
  private async talk(outcomes: Outcome[], quantity: number): Promise<void> {
    const { calls, log } = this.config;
    const began = performance.now();
    let reported: Accepted[] = [];
    let claimed: Claimed[] = [];
    try {
      if (outcomes.length === 0) claimed = await calls.claim(quantity);
      else if (quantity === 0) reported = await calls.report(outcomes);
      else ({ reported, claimed } = await calls.reportAndClaim(outcomes, quantity));
    } catch (problem) {
      this.returned(began);
      if (outcomes.length > 0 && refusesReport(problem)) return this.reportOneByOne(outcomes);
      if (isLocked(problem)) this.apart.add(outcomes.splice(0));
      return this.failed(outcomes, problem);
    }
    this.returned(began);
    this.ahead.called(outcomes.length, began, this.lingerFrom - began);
    if (this.backoff > 0) log.info("calling the database: it answers again", { queue: this.queue });
    this.backoff = this.retryAt = 0;
    this.settle(outcomes, reported);
    if (quantity > 0) this.look.found(quantity, claimed.length, performance.now());
    await this.begin(claimed, began);
  }

  /** Notes that the call that began then has returned. */
  private returned(began: number): void {
    this.lingerFrom = performance.now();
    this.linger = Math.min(Math.max((this.lingerFrom - began) / 4, minLinger), maxLinger);
  }

  /** Puts back what could not be reported and lets some time pass. */
  private failed(outcomes: Outcome[], problem: unknown): void {
    this.ended.unshift(...outcomes);
    const first = this.backoff === 0;
    this.backoff = Math.min(Math.max(2 * this.backoff, minBackoff), maxBackoff);
    this.retryAt = performance.now() + this.backoff;
    const fields = { queue: this.queue, error: explain(problem) };
    if (first) this.config.log.warn("calling the database: it failed, trying again", fields);
    else this.config.log.debug("calling the database: it failed again", fields);
  }

  /** Finds the reports that the database refuses; the others go through. */
  private async reportOneByOne(outcomes: Outcome[]): Promise<void> {
    for (const [i, o] of outcomes.entries()) {
      try {
        this.settle([o], await this.apart.alone(o));
      } catch (problem) {
        if (!refusesReport(problem) && !isLocked(problem)) return this.failed(outcomes.slice(i), problem);
        this.apart.add([o], problem);
      }
    }
  }

  /** Holds a delivery no longer. */
  letGo(d: Delivery): void {
    if (this.held.get(d.body.msg_id) === d) this.held.delete(d.body.msg_id);
  }

  /** Lets go of what was reported. */
  settle(outcomes: Outcome[], answers: Accepted[]): void {
    const late = new Set(answers.filter((a) => !a.accepted).map((a) => a.msg_id));
    for (const o of outcomes) {
      const d = o.delivery;
      this.letGo(d);
      const isLate = late.has(d.body.msg_id);
      if (!isLate || d.inTransaction) this.done++; // the transaction has committed, and took the message along
      else this.config.log.info("reporting step: too late, the result does not count", d.where());
      if (!isLate && o.presumed) this.logFailure(o);
    }
  }

  /** Starts the handlers of what was claimed. asked is when the claim was sent: the leases began after it. */
  private async begin(claimed: Claimed[], asked: number): Promise<void> {
    const now = performance.now();
    const back: Delivery[] = [];
    const foreign: Delivery[] = [];
    for (const body of claimed) {
      const d = new Delivery(body, this, asked, now);
      this.held.get(body.msg_id)?.abort(new LeaseLost()); // its lease was over, and it came back to us
      const run = this.config.handlers.get(body.handler);
      if (this.stopping) back.push(d);
      else if (!run && body.delivery < unknownDeliveries) foreign.push(d);
      else {
        this.held.set(body.msg_id, d);
        if (!run) this.endUnknown(d);
        else if (this.atWork.size >= this.config.slots) this.waiting.push(d);
        else this.launch(d);
      }
    }
    await this.giveBack(back);
    await this.putBack(foreign);
  }

  private launch(d: Delivery): void {
    this.atWork.add(d);
    void this.run(d).then((o) => this.end(o));
  }

  private async run(d: Delivery): Promise<Outcome> {
    const timer = d.timeout > 0 ? setTimeout(() => d.abort(new TimedOut()), Math.min(d.timeout, 2 ** 31 - 1)) : undefined;
    let o: Outcome;
    try {
      d.signal.throwIfAborted(); // it was cancelled or lost while it waited for its slot
      o = d.completed(await this.config.handlers.get(d.body.handler)!(d));
    } catch (thrown) {
      o = d.failed(thrown);
      if (!o.giveBack) this.logFailure(o);
    }
    clearTimeout(timer);
    return o;
  }

  /** Notes the outcome of a handler and frees its slot, for the next one if it waits already. */
  private end(o: Outcome): void {
    this.atWork.delete(o.delivery);
    const next = this.stopping ? undefined : this.waiting.shift();
    if (next) this.launch(next);
    o.delivery.ended = true;
    if (!o.giveBack) this.note(o); // else it stays held, and winding up releases it
    this.alarm.ring();
  }

  private note(o: Outcome): void {
    if (this.ended.length === 0) this.lingerFrom = performance.now();
    this.ended.push(o);
  }

  private endUnknown(d: Delivery): void {
    const names = [...this.config.handlers.keys()].sort().join(", ");
    const message = clean(`no worker on queue "${this.queue}" took handler "${d.body.handler}" in ${d.body.delivery} deliveries; this one has ${names}`, 8 << 10);
    d.ended = true;
    this.note(new Outcome(d, { status: "failed", error: { type: types.unknownHandler, message, retryable: true } }));
  }

  private logFailure(o: Outcome): void {
    const { status, error } = o.report;
    this.config.log.info("running handler: it failed", {
      ...o.delivery.where(), handler: o.delivery.body.handler, status, type: error?.type, retryable: error?.retryable,
      ...(this.config.logErrors && { error: error?.message }),
    });
  }

  /** Takes the steps that wait for a slot since before a time; nothing is claimed ahead for a while then. */
  private takeWaiting(before: number): Delivery[] {
    const taken: Delivery[] = [];
    while (this.waiting[0] && this.waiting[0].claimedAt <= before) {
      const d = this.waiting.shift()!;
      if (this.held.get(d.body.msg_id) !== d) continue;
      this.held.delete(d.body.msg_id);
      taken.push(d);
    }
    if (taken.length > 0) this.ahead.estimate = 0;
    return taken;
  }

  /** Makes steps visible to other workers at once. */
  private async giveBack(back: Delivery[]): Promise<void> {
    if (back.length === 0) return;
    try {
      await this.config.calls.release(back);
    } catch (problem) {
      if (back.length > 1 && (isLocked(problem) || refusesReport(problem))) {
        for (const d of back) await this.giveBack([d]);
        return;
      }
      this.config.log.warn("giving steps back: it failed, they come back when their leases end", { queue: this.queue, count: back.length, error: textOf(problem) });
    }
  }

  /** Leaves steps without a handler here to other workers, each time for longer. */
  private async putBack(foreign: Delivery[]): Promise<void> {
    for (const d of foreign) {
      if (!this.unknown.has(d.body.handler)) {
        this.unknown.add(d.body.handler);
        this.config.log.warn("claiming step: this worker has no such handler, the step is left to other workers; give handlers of different workers different queues", { queue: this.queue, handler: d.body.handler });
      }
    }
    for (const delivery of new Set(foreign.map((d) => d.body.delivery))) {
      const ones = foreign.filter((d) => d.body.delivery === delivery);
      await this.config.calls.extend(ones, delivery * 1000).catch((problem: unknown) => {
        this.config.log.warn("putting steps back: it failed, they come back when their leases end", { queue: this.queue, count: ones.length, error: textOf(problem) });
      });
    }
  }
}
