/** What tests share: the database and the orchestrator that the test run brings, and queues of their own. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, type TestContext } from "node:test";
import { promisify } from "node:util";

import pg from "pg";

import { Client, Worker, silentLog, type WorkerConfig } from "../src/index.js";

/** Milliseconds that tests wait for what must come. */
export const patience = 60_000;

export const url = process.env["PAWL_DATABASE_URL"] ?? "";
assert.ok(url, "PAWL_DATABASE_URL is not set: run the tests with `make sdk-typescript`");

export const pool = new pg.Pool({ connectionString: url, max: 4 });
pool.on("error", () => {});
export const client = new Client({ databaseUrl: url });
after(async () => {
  await client.close();
  await pool.end();
});

/** A step as the database has it. */
export interface Row {
  state: string;
  attempt: number;
  deliveries: number;
  failures: number;
  worker: string | null;
  result: any;
  error: { type: string; message: string; retryable: boolean; retry_after?: number } | null;
}

export async function step(taskId: string, name = "run"): Promise<Row | undefined> {
  const { rows } = await pool.query("select state, attempt, deliveries, failures, worker, result, error from pawl.steps where task_id = $1 and step = $2", [taskId, name]);
  return rows[0];
}

/** Waits until a condition holds, and returns what it gave. */
export async function eventually<T>(condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  const deadline = Date.now() + patience;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < deadline, `waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Waits until the step of a one-step task is in a state. */
export function until(taskId: string, state: string): Promise<Row> {
  return eventually(async () => {
    const row = await step(taskId);
    return row?.state === state ? row : undefined;
  }, `step of ${taskId} is ${state}`);
}

/** When the message of a one-step task comes back, in milliseconds: the end of its lease. */
export async function visibleAt(queue: string, taskId: string): Promise<number> {
  const { rows } = await pool.query(`select vt from pgmq.q_${queue} where message->>'task_id' = $1`, [taskId]);
  return rows[0].vt.getTime();
}

/** The name of a new queue, made by naming it as a first request would. */
export async function newQueue(handler = "echo"): Promise<string> {
  const name = `ts_${randomBytes(5).toString("hex")}`;
  await pool.query("select pawl.adhoc_template('default', $1, $2)", [handler, name]);
  return name;
}

/** Sets lease and back-off of a handler's steps on a queue that are yet to be made. */
export async function limits(queue: string, set: { leaseMs?: number; baseMs?: number; timeoutMs?: number }): Promise<void> {
  await pool.query(
    `update pawl.template_steps set lease_ms = coalesce($2, lease_ms), base_ms = coalesce($3, base_ms),
       timeout = coalesce($4 * interval '1 ms', timeout) where queue = $1`,
    [queue, set.leaseMs, set.baseMs, set.timeoutMs],
  );
}

/** Starts one-step tasks and returns their ids. */
export async function submit(queue: string, handler: string, ...inputs: unknown[]): Promise<string[]> {
  const sent = await Promise.all(inputs.map((input) => client.enqueue(handler, input, { queue })));
  return Promise.all(sent.map(async (s) => (await s.decision({ timeoutMs: patience })).taskId));
}

/** A worker on a queue, stopped after the test. */
export function newWorker(t: TestContext, queue: string, config: Partial<WorkerConfig> = {}): Worker {
  const log = process.env["VERBOSE"] ? undefined : silentLog;
  const w = new Worker({ databaseUrl: url, queues: [queue], graceMs: 5_000, log, ...config });
  t.after(() => w.stop());
  return w;
}

/** A promise and the function that keeps it. */
export function promised<T = void>(): { promise: Promise<T>; keep: (value: T) => void } {
  let keep!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (keep = resolve));
  return { promise, keep };
}

/** Resolves when a signal is aborted, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

/** The URL of a new database that nobody works on, not even an orchestrator. It goes away with the server. */
export async function idleDatabase(): Promise<string> {
  const name = `ts_${randomBytes(5).toString("hex")}`;
  await pool.query(`create database ${name}`);
  const address = new URL(url);
  address.pathname = name;
  await promisify(execFile)("build/bin/pawl", ["migrate"], { env: { ...process.env, PAWL_DATABASE_URL: address.toString() } });
  return address.toString();
}

/** A template of one step, and its name. */
export async function newTemplate(on: pg.Pool, queue: string): Promise<string> {
  const name = `t${randomBytes(5).toString("hex")}`;
  const steps = [{ no: 0, name: "run", handler: "echo", queue, needs: [] }];
  await on.query("select pawl.register_template($1)", [JSON.stringify({ namespace: "tstest", name, version: "1", steps })]);
  return `tstest/${name}`;
}

/** A way to the database over which the answer to a statement gets lost, once: the connection ends in its place. */
export async function lossyWay(t: TestContext, statement: string): Promise<{ url: string; lost: () => boolean }> {
  let lost = false;
  const way = await newWay(t, (near, far) => {
    let deaf = false;
    near.on("data", (data) => {
      if (!lost && data.includes(statement)) lost = deaf = true;
      far.write(data);
    });
    far.on("data", (data) => (deaf ? near.destroy() : near.write(data)));
  });
  return { url: way, lost: () => lost };
}

/** A way to the database over which a statement never arrives: its connection stays open, and is silent from then on. */
export async function silentWay(t: TestContext, statement: string): Promise<{ url: string; count: () => number }> {
  let count = 0;
  const way = await newWay(t, (near, far) => {
    let silent = false;
    near.on("data", (data) => {
      if (!silent && data.includes(statement)) {
        silent = true;
        count++;
      }
      if (!silent) far.write(data);
    });
    far.on("data", (data) => silent || near.write(data));
  });
  return { url: way, count: () => count };
}

/** A way to the database that can be away: it cuts its connections, and refuses so many new ones. */
export async function refusingWay(t: TestContext): Promise<{ url: string; refuse: (count: number) => void; left: () => number }> {
  let left = 0;
  const open = new Set<Socket>();
  const way = await newWay(t, (near, far) => {
    if (left > 0) {
      left--;
      near.destroy();
      return;
    }
    open.add(near);
    near.on("data", (data) => far.write(data)).on("close", () => open.delete(near));
    far.on("data", (data) => near.write(data));
  });
  const refuse = (count: number) => {
    left = count;
    open.forEach((one) => one.destroy());
  };
  return { url: way, refuse, left: () => left };
}

/** A way to the database that can fall silent: connections stay open and new ones are taken, and nothing is passed on. */
export async function mutableWay(t: TestContext): Promise<{ url: string; mute: () => void }> {
  let silent = false;
  const way = await newWay(t, (near, far) => {
    near.on("data", (data) => silent || far.write(data));
    far.on("data", (data) => silent || near.write(data));
  });
  return { url: way, mute: () => void (silent = true) };
}

/** The URL of a way to the database that passes on what it is told to. When one end goes away, so does the other. */
async function newWay(t: TestContext, pass: (near: Socket, far: Socket) => void): Promise<string> {
  const target = new URL(url);
  const server = createServer((near) => {
    const far = connect(Number(target.port || 5432), target.hostname);
    const end = () => [near, far].forEach((s) => s.destroy());
    for (const s of [near, far]) s.on("error", end).on("close", end);
    pass(near, far);
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const way = new URL(url);
  way.hostname = "127.0.0.1";
  way.port = String((server.address() as AddressInfo).port);
  return way.toString();
}
