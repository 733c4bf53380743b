/** How requests are handed in: as tasks at once, or as messages for an orchestrator. */
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import pg from "pg";

import { Client, TaskInputMismatch, UnknownTask, WaitTimeout, newRequestId, type Submission } from "../src/index.js";
import { client, eventually, idleDatabase, lossyWay, newQueue, newTemplate, newWorker, patience, pool, refusingWay } from "./kit.js";

const wait = { timeoutMs: patience };
const requestQueue = "pgmq.q_orchestration_task_requests";

// There is no orchestrator here: what becomes a task does so by itself.
let idle: string;
let db: pg.Pool;
let alone: Client;
let plain: string; // a template

before(async () => {
  idle = await idleDatabase();
  db = new pg.Pool({ connectionString: idle, max: 2 });
  db.on("error", () => {});
  alone = new Client({ databaseUrl: idle });
  await db.query("select pawl.install_queue('idle_queue')");
  plain = await newTemplate(db, "idle_queue");
});
after(async () => {
  await alone.close();
  await db.end();
});

async function messages(of: Submission): Promise<string[]> {
  const { rows } = await db.query(`select msg_id from ${requestQueue} where message->>'request_id' = $1 order by 1`, [of.requestId]);
  return rows.map((row) => row.msg_id);
}

async function assertTask(sent: Submission): Promise<void> {
  assert.deepEqual(await sent.decision({ timeoutMs: 0 }), { outcome: "created", taskId: sent.requestId });
  assert.equal((await alone.get(sent.requestId)).taskId, sent.requestId);
  assert.deepEqual(await messages(sent), []);
}

async function assertMessage(sent: Submission): Promise<void> {
  assert.deepEqual(await messages(sent), [sent.trail.msgId]);
  await assert.rejects(alone.get(sent.requestId), UnknownTask);
  await assert.rejects(sent.decision({ timeoutMs: 1 }), WaitTimeout);
}

test("a plain request is a task at once", async () => {
  const traceparent = "00-01000000000000000000000000000000-0200000000000000-01";
  const sent = await alone.submit(plain, { a: 1 }, { correlationId: "c-1", tags: { team: "x" }, requester: "ann", traceparent });
  await assertTask(sent);
  const task = await alone.get(sent.requestId);
  assert.deepEqual([task.status === "completed", task.input, task.correlationId, task.tags], [false, { a: 1 }, "c-1", { team: "x" }]);
  const { rows } = await db.query("select headers->>'traceparent' as trace from pgmq.q_idle_queue where message->>'task_id' = $1", [sent.requestId]);
  assert.deepEqual(rows, [{ trace: traceparent }]);
  await assert.rejects(sent.wait({ timeoutMs: 50 }), WaitTimeout); // nobody works on it
  await db.query("select pawl.adhoc_template('default', 'echo', 'idle_queue')");
  await assertTask(await alone.enqueue("echo", 1, { queue: "idle_queue" }));
});

test("many plain requests are tasks at once", async () => {
  const sent = await alone.submitMany(plain, Array.from({ length: 50 }, (_, n) => ({ input: { n } })));
  for (const [n, one] of sent.entries()) {
    await assertTask(one);
    assert.deepEqual((await alone.get(one.requestId)).input, { n });
  }
  assert.deepEqual(await alone.submitMany(plain, []), []);
});

test("what has to be decided is a message", async () => {
  await assertMessage(await alone.submit(plain, 1, { key: randomUUID() }));
  await assertMessage(await alone.submit("tstest/no_such_template"));
  await assertMessage(await alone.enqueue("nobody_has_asked_for_this", 1, { queue: "idle_queue" }));
});

test("one that has to be decided takes the others along, in their order", async () => {
  const sent = await alone.submitMany(plain, Array.from({ length: 10 }, (_, n) => ({ input: { n }, key: n === 7 ? randomUUID() : undefined })));
  for (const [n, one] of sent.entries()) {
    await assertMessage(one);
    const { rows } = await db.query(`select message->'input' as input from ${requestQueue} where msg_id = $1`, [one.trail.msgId]);
    assert.deepEqual(rows, [{ input: { n } }]);
  }
});

test("in a caller's transaction it is a message", async () => {
  const tx = await db.connect();
  try {
    await tx.query("begin");
    const sent = await alone.submit(plain, 1, { tx });
    assert.deepEqual(await messages(sent), []);
    await tx.query("commit");
    await assertMessage(sent);
  } finally {
    tx.release();
  }
});

test("repeated with its id it is a message for its task", async () => {
  const requestId = newRequestId();
  await assertTask(await alone.submit(plain, "once", { requestId }));
  const again = await alone.submit(plain, "once", { requestId });
  assert.deepEqual(await messages(again), [again.trail.msgId]);
  await assert.rejects(again.decision({ timeoutMs: 1 }), WaitTimeout);
  assert.equal((await alone.get(requestId)).input, "once");
});

test("a role that may only send messages does", async (t) => {
  const role = `ts_${randomBytes(5).toString("hex")}`;
  await db.query(`create role ${role} login password '${role}'`);
  await db.query(`grant usage on schema pgmq to ${role}`);
  await db.query(`grant insert, select (msg_id) on ${requestQueue} to ${role}`);
  const address = new URL(idle);
  address.username = address.password = role;
  const sender = new Client({ databaseUrl: address.toString() });
  t.after(() => sender.close());
  for (const one of [await sender.submit(plain, 1), ...(await sender.submitMany(plain, [{ input: 2 }, { input: 3 }]))]) {
    assert.deepEqual(await messages(one), [one.trail.msgId]);
    assert.equal(one.trail.decision, undefined);
    await assert.rejects(alone.get(one.requestId), UnknownTask);
  }
});

test("a client of an older database sends messages from then on", async (t) => {
  const older = new Client({ databaseUrl: idle });
  t.after(() => older.close());
  await db.query("alter function pawl.submit_requests(text[], text[]) rename to submit_requests_away");
  const sent = await older.submit(plain).finally(() => db.query("alter function pawl.submit_requests_away(text[], text[]) rename to submit_requests"));
  await assertMessage(sent);
  await assertMessage(await older.submit(plain));
  await assertTask(await alone.submit(plain));
});

test("what the database refuses is an error, and changes nothing for other requests", async () => {
  await db.query(`alter table ${requestQueue} add constraint no_tea check (message->>'requester' <> 'tea') not valid`);
  await assert.rejects(alone.submit(plain, 1, { key: randomUUID(), requester: "tea" }), /no_tea/).finally(() => db.query(`alter table ${requestQueue} drop constraint no_tea`));
  await assertTask(await alone.submit(plain));
});

test("submitting outlasts a restart of the database that has answered before", async (t) => {
  const way = await refusingWay(t);
  const far = new Client({ databaseUrl: way.url, listen: false });
  t.after(() => far.close());
  way.refuse(2);
  await assert.rejects(far.submit("tstest/nothing"), /sending requests: reaching the database/);
  assert.equal(way.left(), 0);
  const first = await far.enqueue("echo", 1, { queue: await newQueue() });
  way.refuse(4);
  const second = await far.enqueue("echo", 2, { queue: await newQueue() });
  assert.equal(way.left(), 0);
  assert.notEqual(first.requestId, second.requestId);
  await far.get(second.requestId);
});

test("the first look at a fresh request comes when there may be something to see", async (t) => {
  for (const [key, look] of [[undefined, "wait"], [randomUUID(), "wait"], [randomUUID(), "decision"]] as const) {
    const own = new pg.Pool({ connectionString: idle, max: 1 });
    const poller = new Client({ pool: own, listen: false });
    t.after(() => poller.close().then(() => own.end()));
    const calls: { began: number; ended: number }[] = [];
    const query = own.query.bind(own) as (...values: unknown[]) => Promise<unknown>;
    own.query = (async (...values: unknown[]) => {
      const began = performance.now();
      return query(...values).finally(() => calls.push({ began, ended: performance.now() }));
    }) as typeof own.query;
    const sent = await poller.submit(plain, 1, { key });
    const gone = new AbortController();
    const waiting = assert.rejects(sent[look]({ signal: gone.signal }), /enough/);
    await eventually(() => calls.length > 1, "it was looked for");
    gone.abort(new Error("enough"));
    await waiting;
    const [submit, first] = calls;
    assert.ok(first!.began - submit!.ended >= 5, `${key ? "keyed" : "plain"}, ${look}: looked after ${first!.began - submit!.ended} ms`);
  }
});

test("fresh tasks are waited for, with LISTEN and without", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  w.handle("echo", (step) => step.input);
  await w.start();
  const poller = new Client({ pool, listen: false });
  t.after(() => poller.close());
  const template = await newTemplate(pool, queue);
  for (const one of [client, poller]) {
    for (let n = 0; n < 5; n++) {
      const sent = await one.submit(template, n);
      assert.ok(sent.trail.decision);
      assert.equal(await sent.wait(wait), n);
    }
    const sent = await one.submitMany(template, Array.from({ length: 20 }, (_, n) => ({ input: n })));
    assert.deepEqual(await Promise.all(sent.map((s) => s.wait(wait))), sent.map((_, n) => n));
  }
});

test("a request repeated with its id attaches, also after its answer was lost", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  const runs: string[] = [];
  w.handle("echo", (step) => {
    runs.push(step.taskId);
    return step.input;
  });
  await w.start();
  const template = await newTemplate(pool, queue);
  const requestId = newRequestId();
  const first = await client.submit(template, "once", { requestId: requestId.toUpperCase() });
  assert.equal(first.requestId, requestId);
  assert.deepEqual(await first.decision(wait), { outcome: "created", taskId: requestId });
  const second = await client.submit(template, "once", { requestId });
  assert.deepEqual(await second.decision(wait), { outcome: "attached", taskId: requestId });
  for (const sent of [first, second]) assert.equal(await sent.wait(wait), "once");
  await assert.rejects((await client.submit(template, "another", { requestId })).wait(wait), TaskInputMismatch);
  assert.deepEqual(runs, [requestId]);

  const way = await lossyWay(t, "submit_requests");
  const far = new Client({ databaseUrl: way.url });
  t.after(() => far.close());
  const sent = await far.submit(template, "lost");
  assert.ok(way.lost());
  assert.deepEqual(await sent.decision(wait), { outcome: "attached", taskId: sent.requestId });
  assert.equal(await sent.wait(wait), "lost");
  assert.deepEqual(runs, [requestId, sent.requestId]);
  const { rows } = await pool.query("select count(*)::int as tasks from pawl.tasks where template = $1", [template.split("/")[1]]);
  assert.deepEqual(rows, [{ tasks: 2 }]);
});
