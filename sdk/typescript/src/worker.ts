import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import type pg from "pg";

import { Heart } from "./beat.js";
import { Calls } from "./calls.js";
import { besides, connectionConfig, findUrl, openPool } from "./database.js";
import { ConfigError } from "./errors.js";
import { hide } from "./hide.js";
import { Lane, type Run } from "./lane.js";
import { Listener } from "./listener.js";
import { standardLog, type Log } from "./log.js";
import { pause, within } from "./look.js";
import { checkOptions, type Names } from "./options.js";
import { explainReach } from "./sqlstate.js";
import { Step, encodeResult, type Parser } from "./step.js";

// Milliseconds that handlers have to return once their signals are aborted.
const handBackTime = 2_000;
// Bounds the last reports and the giving back.
const windUpTime = 10_000;

/** A queue to work on. */
export interface Queue {
  name: string;
  /** How many handlers run at once. Default 32. */
  concurrency?: number;
}

/** What a worker needs: queues, and a database. Everything else has a default. */
export interface WorkerConfig {
  /** Queues to work on, each with a bound of its own. A name alone has the default concurrency. */
  queues: (string | Queue)[];
  /** Leads to the database. Default: PAWL_DATABASE_URL, else a `pawl dev` that runs on this machine. */
  databaseUrl?: string;
  /** Instead of databaseUrl: claims and reports go through it, one connection a queue at a time, two while reports are refused. It is left open. */
  pool?: pg.Pool;
  /** Tells the worker's process apart, in the audit and in logs. Default: host, process id and a random part. */
  name?: string;
  /** Concurrency of queues that name none. Default 32. */
  concurrency?: number;
  /** How long stop lets handlers finish before their signals are aborted. Default 20 s. */
  graceMs?: number;
  /** How often an idle queue is looked at while notifications are not proven to arrive, and while they are. Default 1 s and 5 s. */
  pollMs?: number;
  provenPollMs?: number;
  /** false does without LISTEN, for transaction poolers: the worker polls. Default true. */
  listen?: boolean;
  /** Takes what happens, never an input, a result or, without logErrors, an error's text. Default: standard error. */
  log?: Log;
  /** Adds the texts of handlers' errors to the log, which may then hold what an input holds. Default false. */
  logErrors?: boolean;
}

/** Code for steps: what it returns becomes the step's result as JSON. */
export type Handler<In, Out> = (step: Step<In>) => Out | Promise<Out>;

/** How a handler is registered. */
export interface HandlerOptions<In> {
  /** Checks the input before the handler gets it, such as a schema of zod. What does not fit fails the step for good. */
  input?: Parser<In>;
}

/** What ends run. */
export interface RunOptions {
  /** Stops the worker when it is aborted. */
  signal?: AbortSignal;
  /** Stops the worker when standard input ends. */
  untilEof?: boolean;
}

const queueNames: Names<Queue> = { name: true, concurrency: true };
const configNames: Names<WorkerConfig> = {
  queues: true, databaseUrl: true, pool: true, name: true, concurrency: true, graceMs: true, pollMs: true, provenPollMs: true, listen: true, log: true,
  logErrors: true,
};
const handlerNames: Names<HandlerOptions<any>> = { input: true };
const runNames: Names<RunOptions> = { signal: true, untilEof: true };

/** Runs handlers for the steps of its queues. It starts once. */
export class Worker {
  readonly name: string;
  private readonly handlers = new Map<string, Run>();
  private readonly queues: Required<Queue>[];
  private readonly log: Log;
  private lanes: Lane[] = [];
  private hearts: Heart[] = [];
  private pool: pg.Pool | undefined;
  private beats: pg.Pool | undefined;
  private listener: Listener | undefined;
  private started = false;
  private starting: Promise<void> | undefined;
  private stopping: Promise<void> | undefined;
  private ended!: () => void;
  private readonly end = new Promise<void>((resolve) => (this.ended = resolve));

  constructor(private readonly config: WorkerConfig) {
    checkOptions("making worker", config, configNames);
    if (config.pool && config.databaseUrl) throw new ConfigError("making worker: give databaseUrl or pool, not both");
    this.queues = (config.queues ?? []).map((q) => checkQueue(q, config.concurrency ?? 32));
    if (this.queues.length === 0) throw new ConfigError("making worker: name at least one queue in queues");
    for (const [i, q] of this.queues.entries()) {
      if (this.queues.findIndex((other) => other.name === q.name) < i) throw new ConfigError(`making worker: queue "${q.name}" is named twice`);
    }
    this.name = config.name || `${hostname()}-${process.pid}-${randomBytes(2).toString("hex")}`;
    if (Buffer.byteLength(this.name) > 200) throw new ConfigError("making worker: its name is over the limit of 200 bytes");
    this.log = config.log ?? standardLog;
    hide(this, "config", "pool", "beats", "listener", "lanes", "hearts");
  }

  /** Registers the handler for steps that name it, whichever of the worker's queues they come from. Before start. */
  handle<In = any, Out = unknown>(name: string, handler: Handler<In, Out>, options: HandlerOptions<In> = {}): this {
    checkOptions(`registering handler "${name}"`, options, handlerNames);
    if (!name) throw new ConfigError("registering a handler without a name");
    if (typeof handler !== "function") throw new ConfigError(`registering handler "${name}": it is no function`);
    if (this.handlers.has(name)) throw new ConfigError(`registering handler "${name}" twice`);
    if (this.started) throw new ConfigError(`registering handler "${name}" after start`);
    this.handlers.set(name, async (delivery) => {
      const out = await handler(new Step<In>(delivery, options.input));
      return delivery.inTransaction ? "null" : encodeResult(out); // else its result went with the transaction
    });
    return this;
  }

  /** Connects, checks that the queues exist, and begins to work; it works until stop. Throws ConfigError: its message says what to mend. */
  async start(): Promise<void> {
    if (this.started) throw new ConfigError("starting worker: it was started or stopped before; make a new one");
    if (this.handlers.size === 0) throw new ConfigError("starting worker: no handler is registered; call handle first");
    this.started = true;
    await (this.starting = this.connect());
    this.log.info("worker started", { worker: this.name, queues: this.queues.map((q) => q.name).join(","), handlers: [...this.handlers.keys()].sort().join(",") });
  }

  /**
   * Starts, works until SIGTERM, SIGINT or the signal, then stops gracefully. A second SIGTERM or SIGINT ends the process.
   * With untilEof it stops, too, when standard input ends: for supervisors that hold it open. Programs that do nothing else
   * call process.exit() then: a handler that ignores its signal would keep the process going.
   */
  async run(options: RunOptions = {}): Promise<void> {
    checkOptions("running worker", options, runNames);
    let asked!: () => void;
    const ask = new Promise<void>((resolve) => (asked = resolve));
    const forget = () => {
      process.removeListener("SIGTERM", asked).removeListener("SIGINT", asked);
      options.signal?.removeEventListener("abort", asked);
    };
    process.once("SIGTERM", asked).once("SIGINT", asked);
    options.signal?.addEventListener("abort", asked);
    if (options.untilEof) process.stdin.once("close", asked).resume();
    try {
      if (options.signal?.aborted) return;
      await this.start();
      await Promise.race([ask, this.end]);
      forget();
      await this.stop();
    } finally {
      forget();
      if (options.untilEof) process.stdin.removeListener("close", asked).destroy();
    }
  }

  /**
   * Ends the worker: it claims no more, lets handlers finish for the grace period, then aborts their signals with Stopping,
   * reports what has ended and gives back what has not, so that other workers have it at once. A handler that ignores its
   * signal is left behind and named in the log: what it keeps open, such as a timer, keeps the process going until
   * process.exit(). Resolves when all of that is done; it can be called any number of times, also before start.
   */
  stop(): Promise<void> {
    this.stopping ??= this.windDown();
    return this.stopping;
  }

  /** How many steps this worker has ended. */
  get done(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.done, 0);
  }

  private async connect(): Promise<void> {
    try {
      await this.open();
    } catch (problem) {
      await this.disconnect();
      this.ended();
      throw problem;
    }
    this.listener?.start();
    for (const one of [...this.lanes, ...this.hearts]) one.start();
  }

  private async open(): Promise<void> {
    const url = this.config.pool ? undefined : findUrl(this.config.databaseUrl);
    this.pool = this.config.pool ?? openPool(url!, this.name, 2 * this.queues.length); // a call, and a report that was set aside
    const connection: pg.PoolConfig = url ? connectionConfig(url, this.name) : besides(this.pool.options);
    const Pool = this.pool.constructor as typeof pg.Pool;
    this.beats = new Pool(besides(connection, { min: 0, max: Math.min(this.queues.length, 4) + 1 }));
    this.beats.on("error", () => {});
    if (this.config.listen !== false) this.listener = new Listener({ connection, probe: this.beats, log: this.log });
    for (const q of this.queues) {
      const calls = new Calls(q.name, this.name, this.pool, this.beats);
      await calls.claim(0).catch((problem: unknown) => {
        throw new ConfigError(`starting worker: looking at queue "${q.name}": ${explainReach(problem, connection)}`, { cause: problem });
      });
      const lane = new Lane({
        queue: q.name, slots: q.concurrency, worker: this.name, handlers: this.handlers, calls, idle: () => this.idle(), log: this.log,
        logErrors: this.config.logErrors ?? false,
      });
      this.listener?.subscribe(`pgmq.q_${q.name}.INSERT`, () => lane.wake());
      this.lanes.push(lane);
      this.hearts.push(new Heart(lane, calls, this.log));
    }
  }

  /** How long a queue without work is left alone. */
  private idle(): number {
    return this.listener?.proven ? (this.config.provenPollMs ?? 5_000) : (this.config.pollMs ?? 1_000);
  }

  private async windDown(): Promise<void> {
    this.started = true; // none may start from now on
    await this.starting?.catch(() => {});
    if (!this.beats) {
      this.ended();
      return;
    }
    this.log.info("worker stops", { worker: this.name });
    const claiming = Promise.all(this.lanes.map((lane) => lane.stopClaiming())); // the grace period does not wait for the database
    await this.waitFor(this.config.graceMs ?? 20_000, (lane) => lane.idle);
    for (const lane of this.lanes) lane.interrupt();
    await this.waitFor(handBackTime, (lane) => lane.quiet);
    for (const lane of this.lanes) lane.leaveBehind();
    // From here on calls that hang do not hold us up for longer than this.
    const dying = setTimeout(() => this.lanes.forEach((lane) => lane.die()), windUpTime);
    await within(Promise.all([claiming, ...this.lanes.map((lane) => lane.windUp())]), windUpTime + 500);
    clearTimeout(dying);
    await within(Promise.all(this.hearts.map((heart) => heart.stop())), 1_000);
    await this.disconnect();
    this.log.info("worker stopped", { worker: this.name });
    this.ended();
  }

  private async waitFor(ms: number, condition: (lane: Lane) => boolean): Promise<void> {
    const deadline = performance.now() + ms;
    while (!this.lanes.every(condition) && performance.now() < deadline) await pause(5);
  }

  private async disconnect(): Promise<void> {
    await this.listener?.stop();
    const own = [this.beats, this.config.pool ? undefined : this.pool];
    this.beats = this.pool = this.listener = undefined;
    await within(Promise.all(own.map((pool) => pool?.end())), 2_000);
  }
}

function checkQueue(q: string | Queue, byDefault: number): Required<Queue> {
  if (typeof q === "string") q = { name: q };
  checkOptions("making worker", q, queueNames);
  const { name, concurrency = byDefault } = q;
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(name) || name.startsWith("orchestration_")) {
    throw new ConfigError(`making worker: "${name}" is no name of a step queue: lower-case letters, digits and _, at most 40, and not orchestration_…`);
  }
  if (!Number.isInteger(concurrency) || concurrency < 1) throw new ConfigError(`making worker: queue "${name}": concurrency is not a whole number above 0`);
  return { name, concurrency };
}
