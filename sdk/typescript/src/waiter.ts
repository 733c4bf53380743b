import type pg from "pg";

import { rows } from "./database.js";
import {
  InvalidRequest,
  RequestError,
  TaskAlreadyCompleted,
  TaskAlreadyExists,
  TaskInputMismatch,
  UnknownTask,
} from "./errors.js";
import { Listener } from "./listener.js";
import { silentLog } from "./log.js";
import { Alarm, Look } from "./look.js";
import { taskColumns, taskFrom, type Task } from "./task.js";

/** Where the outcome of a request will be found. */
export interface Trail {
  requestId: string;
  /** The request's message. */
  msgId: string;
  /** The highest ids before it was sent: what it causes comes after. */
  absorbedId: string;
  deadId: string;
}

/** What became of a request. */
export interface Decision {
  outcome: "created" | "attached";
  taskId: string;
}

interface Wait {
  /** Undefined: the task is known. */
  trail: Trail | undefined;
  taskId: string | undefined;
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

  constructor(
    private readonly pool: pg.Pool,
    connection: pg.ClientConfig,
    listen: boolean,
  ) {
    if (listen) {
      this.listener = new Listener({ connection, probe: pool, log: silentLog });
      this.listener.subscribe("pawl_finished", () => this.wake());
    }
  }

  /** Waits for the decision on a request, or for a task's end. gone stops the waiting. */
  wait(of: { trail?: Trail; taskId?: string; decisionOnly?: boolean }, gone: AbortSignal): Promise<{ decision: Decision | undefined; task: Task | undefined }> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { trail: of.trail, taskId: of.taskId, decisionOnly: of.decisionOnly ?? false, decision: undefined, resolve, reject };
      const leave = () => {
        this.waits.delete(wait);
        reject(gone.reason);
      };
      if (gone.aborted) return leave();
      gone.addEventListener("abort", leave, { once: true });
      wait.resolve = (found) => {
        gone.removeEventListener("abort", leave);
        resolve(found);
      };
      wait.reject = (problem) => {
        gone.removeEventListener("abort", leave);
        reject(problem);
      };
      this.waits.add(wait);
      this.run();
      this.wake();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    this.alarm.ring();
    await this.running;
    await this.listener?.stop();
  }

  private wake(): void {
    this.look.woken();
    this.alarm.ring();
  }

  private run(): void {
    if (!this.running) this.listener?.start();
    this.running ??= this.watch();
  }

  private async watch(): Promise<void> {
    while (!this.closed) {
      if (this.waits.size === 0) {
        await this.alarm.wait(60_000);
        continue;
      }
      try {
        const found = (await this.decide()) + (await this.finish());
        this.look.found(this.waits.size + found + 1, found, performance.now());
      } catch {
        // An outage of the database: those who wait have a time limit of their own.
        this.look.found(1, 0, performance.now());
      }
      await this.alarm.wait(this.look.at - performance.now());
    }
  }

  /** Finds what became of requests. Their messages go away in the transaction that decides them. */
  private async decide(): Promise<number> {
    const open = [...this.waits].filter((w) => w.trail && !w.decision);
    if (open.length === 0) return 0;
    const trails = open.map((w) => w.trail!);
    const found = await rows(
      this.pool,
      `select w.n, d.reason as invalid, a.reason as duplicate, a.task_id as holder, t.task_id is not null as created
       from unnest($1::int[], $2::bigint[], $3::uuid[]) w(n, msg_id, id)
       left join pawl.dead_letters d on d.dead_letter_id > $4 and d.queue = $6 and d.msg_id = w.msg_id
       left join pawl.absorbed a on a.absorbed_id > $5 and a.queue = $6 and a.msg_id = w.msg_id
       left join pawl.tasks t on t.task_id = w.id
       where not exists (select from pgmq.q_orchestration_task_requests q where q.msg_id = w.msg_id)`,
      [trails.map((_, n) => n), trails.map((t) => t.msgId), trails.map((t) => t.requestId), least(trails.map((t) => t.deadId)), least(trails.map((t) => t.absorbedId)), "orchestration_task_requests"],
    );
    let ended = 0;
    for (const row of found) {
      const wait = open[row.n]!;
      if (!this.waits.has(wait) || wait.decision) continue;
      const refusal = refusalOf(wait.trail!.requestId, row);
      if (refusal) {
        ended++;
        this.waits.delete(wait);
        wait.reject(refusal);
      } else if (row.holder || row.created) {
        wait.decision = row.holder ? { outcome: "attached", taskId: row.holder } : { outcome: "created", taskId: wait.trail!.requestId };
        wait.taskId = wait.decision.taskId;
        if (wait.decisionOnly) {
          ended++;
          this.waits.delete(wait);
          wait.resolve({ decision: wait.decision, task: undefined });
        }
      }
    }
    return ended;
  }

  /** Finds tasks that have ended. */
  private async finish(): Promise<number> {
    const open = [...this.waits].filter((w) => w.taskId);
    if (open.length === 0) return 0;
    const ids = [...new Set(open.map((w) => w.taskId))];
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
        if (wait.taskId?.toLowerCase() !== row.wanted || !this.waits.has(wait)) continue;
        ended++;
        this.waits.delete(wait);
        if (row.ended) wait.resolve({ decision: wait.decision, task: taskFrom(row) });
        else wait.reject(new UnknownTask(`waiting for task ${row.wanted}: there is no such task, or its retention is over`));
      }
    }
    return ended;
  }
}

function refusalOf(requestId: string, row: { invalid: string | null; duplicate: string | null; holder: string | null }): RequestError | undefined {
  if (row.invalid !== null) return new InvalidRequest(`request refused: ${row.invalid}`, requestId);
  const holder = row.holder ?? undefined;
  switch (row.duplicate) {
    case null:
    case "duplicate request":
      return undefined;
    case "TaskAlreadyExists":
      return new TaskAlreadyExists(`request rejected: task ${holder} with this key is already pending or running`, requestId, holder);
    case "TaskAlreadyCompleted":
      return new TaskAlreadyCompleted(`request rejected: task ${holder} with this key has already completed`, requestId, holder);
    case "TaskInputMismatch":
      return new TaskInputMismatch(`request rejected: task ${holder} has this key or id, and another input`, requestId, holder);
  }
  return new RequestError(`request rejected: ${row.duplicate}`, requestId, holder);
}

function least(ids: string[]): string {
  return ids.reduce((a, b) => (BigInt(a) < BigInt(b) ? a : b));
}
