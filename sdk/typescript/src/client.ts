import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import type pg from "pg";

import { besides, connectionConfig, findUrl, openPool, refusePool, rows, type Queryable } from "./database.js";
import { ClientError, ConfigError, NotPossible, TaskCancelled, TaskEnded, TaskFailed, TaskTimedOut, UnknownTask, WaitTimeout } from "./errors.js";
import { hide } from "./hide.js";
import { enqueueNames, envelope, manyNames, sendNames, submitNames, type EnqueueOptions, type Envelope, type RequestOptions, type SendOptions } from "./request.js";
import { pause } from "./look.js";
import { checkOptions, type Names } from "./options.js";
import { explain, explainReach, sqlState } from "./sqlstate.js";
import { taskColumns, taskFrom, type Task } from "./task.js";
import { Waiter, type Decision, type Trail } from "./waiter.js";

const sendBatch = `select s.msg_id::text from pgmq.send_batch('orchestration_task_requests', $1::text[]::jsonb[], $2::text[]::jsonb[])
  with ordinality s(msg_id, n) order by s.n`;
// Null when all are tasks at once, else the ids of their messages.
const submitRequests = "select pawl.submit_requests($1::text[], $2::text[])::text[] as sent";
// The role may not call the function, or an older database does not have it.
const unavailable = ["42501", "42883", "3F000"];

// Milliseconds before requests that met a lost connection are sent again: a restart of the database takes as long.
const pauses = [0, 100, 300, 1_000, 3_000];
// Beyond it, nearly 25 days, a timer of Node is over at once.
const maxTimer = 2 ** 31 - 1;

/** What a client needs: a database. */
export interface ClientConfig {
  /** Leads to the database. Default: PAWL_DATABASE_URL, else a `pawl dev` that runs on this machine. */
  databaseUrl?: string;
  /** Instead of databaseUrl. It is left open. */
  pool?: pg.Pool;
  /** Who cancels, in the record of operators' commands. Default: this process's host and program. */
  actor?: string;
  /** false does without LISTEN, for transaction poolers: wait polls. Default true. */
  listen?: boolean;
}

/** How to wait. */
export interface WaitOptions {
  /** Default: for ever, and so are Infinity and all above 24 days. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

const configNames: Names<ClientConfig> = { databaseUrl: true, pool: true, actor: true, listen: true };
const waitNames: Names<WaitOptions> = { timeoutMs: true, signal: true };

/** A request that was submitted. */
export class Submission<Out = unknown> {
  /** The id of the task that the request makes, unless it meets one that exists. */
  readonly requestId: string;

  constructor(
    private readonly client: Client,
    readonly trail: Trail,
  ) {
    this.requestId = trail.requestId;
    hide(this, "client");
  }

  /** What a handler that returns a submission gives as its result. */
  toJSON(): { requestId: string } {
    return { requestId: this.requestId };
  }

  /** Waits as Client.decision. */
  decision(options?: WaitOptions): Promise<Decision> {
    return this.client.decision(this, options);
  }

  /** Waits for the task's end and returns its result. Throws as Client.wait. */
  wait(options?: WaitOptions): Promise<Out> {
    return this.client.wait(this, options);
  }
}

/** Submits tasks, waits for them, looks at them and cancels them. */
export class Client {
  private readonly pool: pg.Pool;
  private readonly own: boolean;
  private readonly connection: pg.PoolConfig;
  private readonly waiter: Waiter;
  private readonly actor: string;
  /** The role has turned out to have no right to more than sending messages. */
  private sendOnly = false;
  private closing: Promise<void> | undefined;

  constructor(config: ClientConfig = {}) {
    checkOptions("making client", config, configNames);
    if (config.pool && config.databaseUrl) throw new ConfigError("making client: give databaseUrl or pool, not both");
    const name = `pawl-client-${hostname()}-${process.pid}-${randomBytes(2).toString("hex")}`;
    const url = config.pool ? undefined : findUrl(config.databaseUrl);
    this.own = !config.pool;
    this.pool = config.pool ?? openPool(url!, name, 4);
    this.actor = config.actor ?? `client at ${hostname()}`;
    this.connection = url ? connectionConfig(url, name) : besides(this.pool.options);
    this.waiter = new Waiter(this.pool, this.connection, config.listen !== false);
    hide(this, "pool", "connection", "waiter");
  }

  /**
   * Asks for a task of a template, "namespace/name" or "namespace/name@version". On return the request is durable, and a task
   * already when nothing has to be decided: no key, no start time, no reply, an input that needs no look at a schema.
   */
  async submit<Out = unknown>(template: string, input?: unknown, options: RequestOptions & SendOptions = {}): Promise<Submission<Out>> {
    checkOptions("submitting", options, submitNames);
    return (await this.send<Out>([envelope({ template }, input, options)], options.tx))[0]!;
  }

  /** Submits many requests for tasks of a template with one statement: all or none. */
  async submitMany<Out = unknown>(template: string, requests: ({ input: unknown } & RequestOptions)[], options: SendOptions = {}): Promise<Submission<Out>[]> {
    checkOptions("submitting", options, sendNames);
    for (const request of requests) checkOptions("submitting", request, manyNames);
    return this.send(requests.map(({ input, ...rest }) => envelope({ template }, input, rest)), options.tx);
  }

  /** Asks for a task of one step, which runs the handler: a plain background job. Otherwise as submit. */
  async enqueue<Out = unknown>(handler: string, input?: unknown, options: EnqueueOptions & SendOptions = {}): Promise<Submission<Out>> {
    checkOptions("enqueuing", options, enqueueNames);
    const { namespace, queue: place, ...rest } = options;
    return (await this.send<Out>([envelope({ handler, namespace, queue: place }, input, rest)], options.tx))[0]!;
  }

  /**
   * Waits for a task's end and returns its result. The id is the task's, or that of a request: when that meets a task with
   * its key, that task is the answer. Throws TaskFailed, TaskCancelled or TaskTimedOut when it did not complete, a
   * RequestError when the request was refused, WaitTimeout, ClientError when the client is closed meanwhile, or its database has
   * never been reached. Of an id that nobody sent nothing ever comes: give timeoutMs.
   */
  async wait<Out = unknown>(what: Submission<Out> | string, options: WaitOptions = {}): Promise<Out> {
    const trail = typeof what === "string" ? { requestId: checkId(what), msgId: "0" } : what.trail;
    const { task } = await this.limited({ trail }, options, `task ${trail.requestId} has not ended`);
    switch (task!.status) {
      case "completed":
        return task!.result as Out;
      case "failed":
        throw new TaskFailed(task!);
      case "cancelled":
        throw new TaskCancelled(task!);
      case "timed_out":
        throw new TaskTimedOut(task!);
    }
    throw new TaskEnded(task!);
  }

  /**
   * Waits until the request is decided. Of one that became a task when it was submitted that is known; else an orchestrator
   * decides. Throws the RequestError when it was refused.
   */
  async decision(submission: Submission<any>, options: WaitOptions = {}): Promise<Decision> {
    if (submission.trail.decision) return submission.trail.decision;
    const of = { trail: submission.trail, decisionOnly: true };
    const { decision } = await this.limited(of, options, `no orchestrator has taken request ${submission.requestId}`);
    return decision!;
  }

  /** Reads a task. Throws UnknownTask. */
  async get<Out = unknown>(taskId: string): Promise<Task<Out>> {
    const found = await rows(this.pool, `select ${taskColumns} from pawl.tasks t where t.task_id = $1`, [checkId(taskId)]);
    if (found.length === 0) throw new UnknownTask(`reading task ${taskId}: there is no such task, or its retention is over`);
    return taskFrom<Out>(found[0]);
  }

  /** Ends an open task as cancelled; running handlers hear of it. Throws UnknownTask, or NotPossible when it has ended otherwise. */
  async cancel(taskId: string, reason: string, actor = this.actor): Promise<void> {
    try {
      await rows(this.pool, "select pawl.cancel_task($1::uuid, $2::text, $3::text)", [checkId(taskId), actor, reason]);
    } catch (problem) {
      switch (sqlState(problem)) {
        case "PW020":
          throw new UnknownTask(`cancelling task ${taskId}: there is no such task, or its retention is over`, { cause: problem });
        case "PW021":
          throw new NotPossible(`cancelling task ${taskId}: ${explain(problem)}`, { cause: problem });
      }
      throw problem;
    }
  }

  /** Ends the client's connections, and the waits with a ClientError. It can be called any number of times. */
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  private async end(): Promise<void> {
    await this.waiter.close();
    if (this.own) await this.pool.end();
  }

  private async send<Out>(envelopes: Envelope[], tx: Queryable | undefined): Promise<Submission<Out>[]> {
    if (envelopes.length === 0) return [];
    const values = [envelopes.map((e) => e.body), envelopes.map((e) => e.headers)];
    if (tx) {
      refusePool("sending requests", tx);
      const sent = (await tx.query(sendBatch, values)).rows;
      return envelopes.map((e, i) => new Submission<Out>(this, { requestId: e.requestId, msgId: sent[i].msg_id }));
    }
    const sent = await this.again(() => this.hand(values));
    const submittedAt = performance.now();
    return envelopes.map(({ requestId }, i) => {
      if (sent) return new Submission<Out>(this, { requestId, msgId: sent[i]!, submittedAt });
      return new Submission<Out>(this, { requestId, msgId: "0", submittedAt, decision: { outcome: "created", taskId: requestId } });
    });
  }

  /** Hands requests to the database, as messages if the role may do no more. Returns the messages' ids; null: all are tasks. */
  private async hand(values: unknown[]): Promise<string[] | null> {
    if (!this.sendOnly) {
      try {
        return (await rows(this.pool, submitRequests, values))[0].sent;
      } catch (problem) {
        if (!unavailable.includes(sqlState(problem) ?? "")) throw problem;
        this.sendOnly = true;
      }
    }
    return (await rows(this.pool, sendBatch, values)).map((row) => row.msg_id);
  }

  /**
   * Repeats what failed for want of a connection: a request keeps its id, so sending it twice makes one task. A database that
   * has never answered may be the wrong one: of that the caller is told soon.
   */
  private async again<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        const answer = await work();
        this.waiter.met = true;
        return answer;
      } catch (problem) {
        const state = sqlState(problem);
        const lost = state === undefined || (state.startsWith("57") && state !== "57014") || state.startsWith("08");
        if (!lost) throw problem;
        const wait = (this.waiter.met ? pauses : pauses.slice(0, 1))[tries];
        if (wait === undefined) throw new ClientError(`sending requests: ${explainReach(problem, this.connection)}`, { cause: problem });
        await pause(wait);
      }
    }
  }

  private async limited(of: { trail: Trail; decisionOnly?: boolean }, options: WaitOptions, late: string) {
    checkOptions("waiting", options, waitNames);
    const gone = new AbortController();
    const leave = () => gone.abort(options.signal!.reason);
    const timer =
      options.timeoutMs === undefined || options.timeoutMs > maxTimer
        ? undefined
        : setTimeout(() => gone.abort(new WaitTimeout(`waiting: ${late} within ${options.timeoutMs} ms`)), options.timeoutMs);
    if (options.signal?.aborted) leave();
    options.signal?.addEventListener("abort", leave, { once: true });
    try {
      return await this.waiter.wait(of, gone.signal);
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", leave);
    }
  }
}

function checkId(taskId: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(taskId)) throw new UnknownTask(`"${taskId}" is not the id of a task`);
  return taskId.toLowerCase();
}
