import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test, before, after } from "node:test";

import pg from "pg";

import {
  Client, InvalidRequest, KeyRequired, NotPossible, TaskAlreadyCompleted, TaskAlreadyExists, TaskCancelled, TaskFailed, TaskInputMismatch, UnknownTask, WaitTimeout, Worker,
  Permanent, newRequestId, silentLog, type Step,
} from "../src/index.js";
import { client, eventually, newQueue, patience, pool, url } from "./kit.js";

const wait = { timeoutMs: patience };
let queue = "";
let idle = ""; // nobody works on it
let worker: Worker;

before(async () => {
  queue = await newQueue();
  idle = await newQueue();
  worker = new Worker({ databaseUrl: url, queues: [queue], log: silentLog });
  worker.handle("echo", (step: Step<any>) => {
    if (step.input?.fail) throw new Permanent("no", { type: "told_to" });
    return step.input;
  });
  await worker.start();
});
after(() => worker.stop());

test("submitting, waiting and reading", async () => {
  const sent = await client.enqueue<{ n: number }>("echo", { n: 1 }, { queue, key: randomUUID(), correlationId: "c-1", tags: { month: "2026-03" }, requester: "test" });
  assert.deepEqual(await sent.decision(wait), { outcome: "created", taskId: sent.requestId });
  assert.deepEqual(await sent.wait(wait), { n: 1 });
  assert.deepEqual(await client.wait(sent.requestId, wait), { n: 1 });
  const task = await client.get<{ n: number }>(sent.requestId);
  assert.equal(task.status, "completed");
  assert.deepEqual([task.result, task.input, task.correlationId, task.tags], [{ n: 1 }, { n: 1 }, "c-1", { month: "2026-03" }]);
  assert.ok(task.finalizedAt! >= task.requestedAt);
});

test("many at once, and many who wait", async () => {
  const name = `many_${queue}`;
  await pool.query("select pawl.register_template($1)", [JSON.stringify({ namespace: "tstest", name, version: "1", steps: [{ no: 0, name: "run", handler: "echo", queue, needs: [] }] })]);
  const requests = Array.from({ length: 50 }, (_, n) => ({ input: { n }, correlationId: `c-${n}` }));
  const sent = await client.submitMany<{ n: number }>(`tstest/${name}`, requests);
  const results = await Promise.all(sent.map((s) => s.wait(wait)));
  assert.deepEqual(results.map((r) => r.n), requests.map((r) => r.input.n));
});

test("a task that did not complete is an error of its kind", async () => {
  const failed = await client.enqueue("echo", { fail: true }, { queue });
  await assert.rejects(failed.wait(wait), (problem: unknown) => {
    assert.ok(problem instanceof TaskFailed);
    assert.equal(problem.task.status, "failed");
    return true;
  });
  const open = await client.enqueue("echo", 1, { queue: idle });
  await assert.rejects(client.wait(open.requestId, { timeoutMs: 1 }), WaitTimeout);
  await open.decision(wait);
  await client.cancel(open.requestId, "not wanted");
  await assert.rejects(open.wait(wait), TaskCancelled);
  await assert.rejects(client.cancel(failed.requestId, "too late"), NotPossible);
});

test("duplicates", async () => {
  const key = randomUUID();
  const first = await client.enqueue("echo", { n: 1 }, { queue: idle, key });
  await first.decision(wait);
  const attached = await client.enqueue("echo", { n: 1 }, { queue: idle, key });
  assert.deepEqual(await attached.decision(wait), { outcome: "attached", taskId: first.requestId });
  const rejected = await client.enqueue("echo", { n: 1 }, { queue: idle, key, onDuplicate: "reject" });
  await assert.rejects(rejected.wait(wait), (problem: unknown) => problem instanceof TaskAlreadyExists && problem.existingTaskId === first.requestId);
  const other = await client.enqueue("echo", { n: 2 }, { queue: idle, key });
  await assert.rejects(other.decision(wait), TaskInputMismatch);
  const done = await client.enqueue("echo", { n: 3 }, { queue, key: key + "-2" });
  await done.wait(wait);
  await assert.rejects((await client.enqueue("echo", { n: 3 }, { queue, key: key + "-2", onDuplicate: "reject" })).wait(wait), TaskAlreadyCompleted);
  assert.deepEqual(await (await client.enqueue("echo", { n: 3 }, { queue, key: key + "-2" })).wait(wait), { n: 3 });
});

test("a request repeated with its id makes one task", async () => {
  const requestId = newRequestId();
  for (let i = 0; i < 3; i++) {
    const sent = await client.enqueue("echo", { n: 4 }, { queue, requestId });
    assert.equal((await sent.decision(wait)).taskId, requestId);
    assert.deepEqual(await sent.wait(wait), { n: 4 });
  }
  await assert.rejects((await client.enqueue("echo", { n: 5 }, { queue, requestId })).wait(wait), TaskInputMismatch);
});

test("what is wrong with a request is said", async () => {
  await assert.rejects((await client.submit("tstest/no_such_template", {})).wait(wait), InvalidRequest);
  await assert.rejects(client.enqueue("echo", "\0", { queue }), InvalidRequest);
  await assert.rejects(client.enqueue("echo", 1, { queue, key: "x".repeat(256) }), InvalidRequest);
  const strict = `strict_${queue}`;
  await pool.query("select pawl.register_template($1)", [JSON.stringify({ namespace: "tstest", name: strict, version: "1", identity: { strategy: "caller_provided" }, steps: [{ no: 0, name: "run", handler: "echo", queue, needs: [] }] })]);
  await assert.rejects((await client.submit(`tstest/${strict}`, 1)).wait(wait), KeyRequired);
  await assert.rejects(client.get(randomUUID()), UnknownTask);
  await assert.rejects(client.wait(randomUUID(), { timeoutMs: 50 }), WaitTimeout);
  await assert.rejects(client.cancel(randomUUID(), "test"), UnknownTask);
  assert.throws(() => new Client({ databaseUrl: url, pool }), /not both/);
});

test("a request in a transaction is sent when that commits, and only then", async () => {
  const tx = new pg.Client(url);
  await tx.connect();
  try {
    await tx.query("begin");
    const dropped = await client.enqueue("echo", 1, { queue, tx });
    await tx.query("rollback");
    await tx.query("begin");
    const sent = await client.enqueue("echo", 2, { queue, tx });
    const waiting = sent.wait(wait);
    await assert.rejects(client.get(sent.requestId), UnknownTask);
    await tx.query("commit");
    assert.equal(await waiting, 2);
    await assert.rejects(client.get(dropped.requestId), UnknownTask);
  } finally {
    await tx.end();
  }
});

test("a client is closed as often as anybody likes", async () => {
  const own = new Client({ databaseUrl: url });
  assert.equal(await (await own.enqueue("echo", 1, { queue })).wait(wait), 1);
  await Promise.all([own.close(), own.close()]);
  await own.close();
});

test("waiting ends with its time limit or its signal", async () => {
  const open = await client.enqueue("echo", 1, { queue: idle });
  await assert.rejects(open.wait({ timeoutMs: 50 }), WaitTimeout);
  const gone = new AbortController();
  const waiting = assert.rejects(open.wait({ signal: gone.signal }), /enough/);
  gone.abort(new Error("enough"));
  await waiting;
});

test("a time limit beyond what a timer holds is none", async () => {
  for (const timeoutMs of [Infinity, 2 ** 31]) {
    const gone = new AbortController();
    const waiting = client.wait(randomUUID(), { timeoutMs, signal: gone.signal });
    const other = assert.rejects(client.wait(randomUUID(), { timeoutMs: 100 }), WaitTimeout);
    await Promise.race([other, waiting]); // the other's limit comes first
    gone.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
  }
});

test("waiting works without LISTEN and over a lost connection", async () => {
  const own = new pg.Pool({ connectionString: url, max: 2, application_name: `wait-${queue}` });
  own.on("error", () => {});
  const poller = new Client({ pool: own, listen: false });
  try {
    assert.equal(await (await poller.enqueue("echo", 1, { queue })).wait(wait), 1);
    const open = await poller.enqueue("echo", 2, { queue: idle });
    const waiting = assert.rejects(open.wait(wait), TaskCancelled);
    await open.decision(wait);
    await eventually(async () => (await pool.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [`wait-${queue}`])).rows.length > 0, "a connection was cut");
    await client.cancel(open.requestId, "test");
    await waiting;
  } finally {
    await poller.close();
    await own.end();
  }
});
