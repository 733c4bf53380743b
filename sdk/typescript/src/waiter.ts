import type pg from "pg";

import { rows } from "./database.js";
import {
  ClientError,
  InvalidRequest,
  KeyRequired,
  ResultExpired,
  TaskAlreadyCompleted,
  TaskAlreadyExists,
  TaskInputMismatch,
  UnknownTask,
} from "./errors.js";
import { Listener } from "./listener.js";
import { silentLog, textOf } from "./log.js";
import { Alarm, Look, again } from "./look.js";
import { explain, explainReach, sqlState } from "./sqlstate.js";
import { taskColumns, taskFrom, type Task } from "./task.js";

/** Where the outcome of a request will be found. */
export interface Trail {
  requestId: string;
  /** The request's message; "0" when it is not known: the id alone does not say which of several requests it was. */
  msgId: string;
  /** What is known from the start. */
  decision?: Decision;
  /** When the database has taken it, by performance.now(); without it that is its sender's transaction's matter. */
  submittedAt?: number;
}

/** What became of a request. */
export interface Decision {
  outcome: "created" | "attached";
  taskId: string;
}

interface Wait {
  trail: Trail;
  /** Whether the decision is all that is waited for. */
  decisionOnly: boolean;
  decision: Decision | undefined;
  resolve: (found: { decision: Decision | undefined; task: Task | undefined }) => void;
  reject: (problem: unknown) => void;
}

/**
 * Looks for the ends of tasks, for all who wait in this client together: after each announcement, and without any after a
 * while. One statement a look, however many wait.
 */
export class Waiter {
  private readonly waits = new Set<Wait>();
  private readonly alarm = new Alarm();
  private readonly look = new Look(() => (this.listener?.proven ? 1_000 : 250));
  private listener: Listener | undefined;
  private running: Promise<void> | undefined;
  private closed = false;
  /** The database has answered. One that never has may be the wrong one: of that who waits is told. */
  met = false;
  /** When the next look is due. */
  private due = Infinity;

  constructor(
    private readonly pool: pg.Pool,
    private readonly connection: pg.ClientConfig,
    listen: boolean,
  ) {
    if (listen) {
      this.listener = new Listener({ connection, probe: pool, log: silentLog });
      this.listener.subscribe("pawl_finished", () => this.wake());
    }
  }

  /** Waits for the decision on a request, or for a task's end. gone stops the waiting. */
  wait(of: { trail: Trail; decisionOnly?: boolean }, gone: AbortSignal): Promise<{ decision: Decision | undefined; task: Task | undefined }> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { trail: of.trail, decisionOnly: of.decisionOnly ?? false, decision: of.trail.decision, resolve, reject };
      const leave = () => {
        this.waits.delete(wait);
        reject(gone.reason);
      };
      if (gone.aborted) return leave();
      if (this.closed) return reject(closed());
      gone.addEventListener("abort", leave, { once: true });
      wait.resolve = (found) => {
        gone.removeEventListener("abort", leave);
        resolve(found);
      };
      wait.reject = (problem) => {
        gone.removeEventListener("abort", leave);
        reject(problem);
      };
      if (this.waits.size === 0) this.due = Infinity; // what was due was for those who have gone
      this.waits.add(wait);
      this.run();
      this.wake(of.trail.submittedAt);
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    this.rejectAll(closed());
    this.alarm.ring();
    await this.running;
    await this.listener?.stop();
  }

  /**
   * Makes a look due, and a series of others after it: at once, or, when a request was submitted a moment ago, as soon as
   * there may be something to see.
   */
  private wake(submittedAt = -Infinity): void {
    this.look.woken();
    this.due = Math.min(this.due, submittedAt + again[0]!);
    this.alarm.ring();
  }

  private run(): void {
    if (!this.running) this.listener?.start();
    this.running ??= this.watch();
  }

  private async watch(): Promise<void> {
    while (!this.closed) {
      const pause = this.waits.size === 0 ? Infinity : this.due - performance.now();
      if (pause > 0) {
        await this.alarm.wait(pause);
        continue;
      }
      this.due = Infinity; // what happens during the look makes another one due
      try {
        const found = (await this.decide()) + (await this.finish());
        this.met = true;
        this.look.found(this.waits.size + found + 1, found, performance.now());
      } catch (problem) {
        // An outage of the database: those who wait have a time limit of their own.
        this.look.found(1, 0, performance.now());
        if (sqlState(problem)?.startsWith("42")) this.refuse(problem);
        else if (!this.met) this.rejectAll(new ClientError(`waiting: ${explainReach(problem, this.connection)}`, { cause: problem }));
      }
      this.due = Math.min(this.due, this.look.at);
    }
  }

  /** Ends all waits: the role may not look, or there is nothing to look at, and looking again will not cure it. */
  private refuse(problem: unknown): void {
    const hint = sqlState(problem) === "42501" ? `${textOf(problem)}: waiting reads Pawl's tables, as the role pawl_operator may` : explain(problem);
    this.rejectAll(new ClientError(`waiting: ${hint}`, { cause: problem }));
  }

  private rejectAll(problem: ClientError): void {
    for (const wait of this.waits) wait.reject(problem);
    this.waits.clear();
  }

  /**
   * Finds what became of requests. A request's message goes away in the transaction that decides it, which also makes its
   * task, or leaves a trace: an absorbed row when a task holds its key or id, a dead letter when it is invalid.
   */
  private async decide(): Promise<number> {
    const open = [...this.waits].filter((w) => !w.decision);
    if (open.length === 0) return 0;
    const found = await rows(this.pool, decisions, [open.map((w) => w.trail.requestId), open.map((w) => w.trail.msgId)]);
    let ended = 0;
    for (const row of found) {
      const wait = open[Number(row.ord) - 1]!;
      const { requestId } = wait.trail;
      if (!this.waits.has(wait) || row.pending) continue;
      const refusal = refusalOf(requestId, row);
      if (refusal) {
        ended++;
        this.waits.delete(wait);
        wait.reject(refusal);
      } else if (row.absorbed || row.known) {
        wait.decision = row.absorbed ? { outcome: "attached", taskId: row.holder } : { outcome: "created", taskId: requestId };
        if (!wait.decisionOnly) continue;
        ended++;
        this.waits.delete(wait);
        wait.resolve({ decision: wait.decision, task: undefined });
      }
    }
    return ended;
  }

  /** Finds tasks that have ended. */
  private async finish(): Promise<number> {
    const open = [...this.waits].filter((w) => w.decision);
    if (open.length === 0) return 0;
    const ids = [...new Set(open.map((w) => w.decision!.taskId))];
    const found = await rows(
      this.pool,
      `select w.id as wanted, t.task_id is not null as known, t.finalized_at is not null as ended, f.*
       from unnest($1::uuid[]) w(id)
       left join pawl.tasks t on t.task_id = w.id
       left join lateral (select ${taskColumns} from (select t.*) t where t.finalized_at is not null) f on true
       where t.task_id is null or t.finalized_at is not null`,
      [ids],
    );
    let ended = 0;
    for (const row of found) {
      for (const wait of open) {
        if (wait.decision!.taskId !== row.wanted || !this.waits.has(wait)) continue;
        ended++;
        this.waits.delete(wait);
        if (row.ended) wait.resolve({ decision: wait.decision, task: taskFrom(row) });
        else wait.reject(new UnknownTask(`waiting for task ${row.wanted}: there is no such task, or its retention is over`));
      }
    }
    return ended;
  }
}

function closed(): ClientError {
  return new ClientError("waiting: the client is closed");
}

// The message is asked for by its id, without "exists": that may become a hash of the whole queue, its dead rows passed.
const decisions = `
  select w.ord, t.task_id is not null as known,
    coalesce((select true from pgmq.q_orchestration_task_requests q where q.msg_id = w.message limit 1), false) as pending,
    a.reason as absorbed, a.task_id as holder, h.task_id is not null as held, d.reason as dead
  from unnest($1::uuid[], $2::bigint[]) with ordinality w(request, message, ord)
  left join pawl.tasks t on t.task_id = w.request
  left join lateral (
    select x.reason, x.task_id from pawl.absorbed x
    where (t.task_id is null or w.message > 0) and x.queue = 'orchestration_task_requests'
      and x.message->>'request_id' = w.request::text and (w.message = 0 or x.msg_id = w.message)
    order by x.absorbed_id desc limit 1) a on true
  left join pawl.tasks h on h.task_id = a.task_id
  left join lateral (
    select x.reason from pawl.dead_letters x
    where (t.task_id is null or w.message > 0) and a.reason is null and x.queue = 'orchestration_task_requests' and x.status = 'open'
      and x.message->>'request_id' = w.request::text and (w.message = 0 or x.msg_id = w.message)
    order by x.dead_letter_id desc limit 1) d on true`;

function refusalOf(requestId: string, row: { absorbed: string | null; holder: string | null; held: boolean; dead: string | null }): ClientError | undefined {
  if (row.dead !== null) {
    const [, kind, message] = /^([A-Za-z]+): ([^]*)$/.exec(row.dead) ?? [, "InvalidRequest", row.dead];
    return kind === "KeyRequired" ? new KeyRequired(message!, requestId) : new InvalidRequest(`${kind}: ${message}`, requestId);
  }
  const holder = row.holder ?? undefined;
  switch (row.absorbed) {
    case null:
      return undefined;
    case "duplicate request":
      return row.held ? undefined : new ResultExpired(`the task ${holder} that holds the key has completed, and its result was removed when its retention was over`);
    case "TaskAlreadyExists":
      return new TaskAlreadyExists(`request rejected: task ${holder} with this key is already pending or running`, requestId, holder);
    case "TaskAlreadyCompleted":
      return new TaskAlreadyCompleted(`request rejected: task ${holder} with this key has already completed`, requestId, holder);
    case "TaskInputMismatch":
      return new TaskInputMismatch(`request rejected: task ${holder} has this key or id, and another input`, requestId, holder);
  }
  return new InvalidRequest(`request refused: ${row.absorbed}`, requestId, holder);
}
