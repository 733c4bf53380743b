import assert from "node:assert/strict";
import { test } from "node:test";

import { Worker, silentLog, type Step } from "../src/index.js";
import { within } from "../src/look.js";
import { aborted, client, eventually, limits, newQueue, newWorker, patience, pool, promised, step, submit, until, url } from "./kit.js";

interface Order {
  id: string;
  items: number[];
}

test("a handler gets its typed input and its result is the task's", async (t) => {
  const queue = await newQueue("total");
  const w = newWorker(t, queue);
  w.handle("total", async (step: Step<Order>) => ({ id: step.input.id, total: step.input.items.reduce((a, b) => a + b, 0), token: step.token }));
  await w.start();
  const sent = await client.enqueue<{ id: string; total: number; token: string }>("total", { id: "Größe ✓ 😀", items: [1, 2, 3] }, { queue, correlationId: "c-1" });
  const result = await sent.wait({ timeoutMs: patience });
  assert.deepEqual(result, { id: "Größe ✓ 😀", total: 6, token: `${sent.requestId}/run` });
});

test("several queues each keep their own bound", async (t) => {
  const [one, two] = [await newQueue("slow"), await newQueue("slow")];
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  const w = newWorker(t, one, { queues: [{ name: one, concurrency: 2 }, { name: two, concurrency: 3 }] });
  w.handle("slow", async (step) => {
    const now = (running.get(step.queue) ?? 0) + 1;
    running.set(step.queue, now);
    most.set(step.queue, Math.max(most.get(step.queue) ?? 0, now));
    await new Promise((resolve) => setTimeout(resolve, 20));
    running.set(step.queue, running.get(step.queue)! - 1);
  });
  const inputs = Array.from({ length: 12 }, (_, i) => i);
  const tasks = [...(await submit(one, "slow", ...inputs)), ...(await submit(two, "slow", ...inputs))];
  await w.start();
  for (const task of tasks) await until(task, "complete");
  assert.ok(most.get(one)! <= 2 && most.get(two)! <= 3, JSON.stringify([...most]));
});

test("steps with dependencies, config and a large input come whole", async (t) => {
  const queue = await newQueue();
  const definition = {
    namespace: "tstest", name: queue, version: "1",
    steps: [
      { no: 0, name: "first", handler: "first", queue, needs: [] },
      { no: 1, name: "second", handler: "second", queue, needs: [0], config: { factor: 3 } },
    ],
  };
  await pool.query("select pawl.register_template($1)", [JSON.stringify(definition)]);
  const w = newWorker(t, queue);
  const large = "x".repeat(100_000);
  w.handle("first", () => ({ large }));
  w.handle("second", (step: Step<{ large: string }>) => ({
    same: step.input.large === large && step.dependency<{ large: string }>("first").large === large,
    factor: step.config<{ factor: number }>()?.factor,
  }));
  await w.start();
  const sent = await client.submit(`tstest/${queue}`, { large });
  await sent.wait({ timeoutMs: patience });
  assert.deepEqual((await step(sent.requestId, "second"))?.result, { same: true, factor: 3 });
});

test("fields and headers of a newer engine do no harm", async (t) => {
  const queue = await newQueue();
  const [task] = await submit(queue, "echo", 1);
  await pool.query(`update pgmq.q_${queue} set message = message || '{"from_the_future": {"a": 1}}', headers = coalesce(headers, '{}') || '{"other": [1]}'`);
  const w = newWorker(t, queue);
  w.handle("echo", (step) => step.input);
  await w.start();
  assert.equal((await until(task!, "complete")).result, 1);
});

test("an announcement wakes an idle worker, and without LISTEN it polls", async (t) => {
  for (const config of [{ pollMs: 3_600_000, provenPollMs: 3_600_000 }, { listen: false, pollMs: 20 }]) {
    const queue = await newQueue();
    const w = newWorker(t, queue, config);
    w.handle("echo", (step) => step.input);
    await w.start();
    for (const input of [1, 2, 3]) await until((await submit(queue, "echo", input))[0]!, "complete");
  }
});

test("leases are extended while a handler runs", async (t) => {
  const queue = await newQueue();
  await limits(queue, { leaseMs: 600 });
  const [task] = await submit(queue, "echo", 1);
  const w = newWorker(t, queue);
  w.handle("echo", async (step) => {
    // Three leases, by the database's clock: the lease was extended beyond each.
    for (let extended = 0, last = 0; extended < 3; ) {
      const { rows } = await pool.query(`select extract(epoch from vt)::float as vt from pgmq.q_${queue}`);
      if (rows[0].vt > last) extended++;
      last = rows[0].vt;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return step.delivery;
  });
  await w.start();
  const row = await until(task!, "complete");
  assert.ok(row.deliveries >= 1);
});

test("cancelling a task aborts its handler, whose result does not count", async (t) => {
  const queue = await newQueue();
  await limits(queue, { leaseMs: 900 });
  const [task] = await submit(queue, "echo", 1);
  const began = promised();
  const why = promised<unknown>();
  const w = newWorker(t, queue);
  w.handle("echo", async (step) => {
    began.keep();
    why.keep(await aborted(step.signal));
    return "too late";
  });
  await w.start();
  await began.promise;
  await client.cancel(task!, "test");
  assert.equal(((await why.promise) as Error).name, "Cancelled");
  await eventually(async () => (await pool.query(`select from pgmq.q_${queue}`)).rows.length === 0, "the message is gone");
  assert.equal((await step(task!))?.state, "cancelled");
});

test("a lease that another worker got aborts the handler", async (t) => {
  const queue = await newQueue();
  await limits(queue, { leaseMs: 900 });
  const [task] = await submit(queue, "echo", 1);
  const began = promised();
  const why = promised<unknown>();
  const w = newWorker(t, queue, { concurrency: 1 });
  w.handle("echo", async (step) => {
    began.keep();
    why.keep(await aborted(step.signal));
  });
  await w.start();
  await began.promise;
  await eventually(async () => {
    await pool.query(`update pgmq.q_${queue} set vt = clock_timestamp()`);
    const { rows } = await pool.query("select json_array_length(pawl.claim_steps($1, 1, 'second')) as n", [queue]);
    return rows[0].n === 1;
  }, "the second worker has the step");
  assert.equal(((await why.promise) as Error).name, "LeaseLost");
  await w.stop();
  assert.equal((await step(task!))?.worker, "second");
});

test("the step's timeout aborts the handler", async (t) => {
  const queue = await newQueue();
  await limits(queue, { timeoutMs: 200 });
  const w = newWorker(t, queue);
  const why = promised<unknown>();
  w.handle("echo", async (step) => {
    why.keep(await aborted(step.signal));
    step.signal.throwIfAborted();
  });
  await w.start();
  await submit(queue, "echo", 1);
  assert.equal(((await why.promise) as Error).name, "TimedOut");
});

test("stop lets handlers finish, and hands back what does not", async (t) => {
  const queue = await newQueue();
  const [quick, slow] = await submit(queue, "echo", "quick", "slow");
  const w = newWorker(t, queue, { graceMs: 300 });
  const began = [promised(), promised()];
  const go = promised();
  w.handle("echo", async (step) => {
    if (step.input === "quick") {
      began[0]!.keep();
      await go.promise;
      return "done";
    }
    began[1]!.keep();
    await aborted(step.signal);
    throw step.signal.reason;
  });
  await w.start();
  await Promise.all(began.map((b) => b.promise));
  const stopping = w.stop();
  go.keep();
  await stopping;
  assert.equal((await step(quick!))?.state, "complete");
  // Handed back: visible at once, in the same attempt.
  const { rows } = await pool.query("select pawl.claim_steps($1, 10, 'second') as claimed", [queue]);
  assert.deepEqual(rows[0].claimed.map((c: any) => [c.task_id, c.attempt, c.delivery]), [[slow, 1, 2]]);
});

test("stop names the handlers that ignore their signals", async (t) => {
  const queue = await newQueue("deaf");
  const [task] = await submit(queue, "deaf", 1);
  let said: any;
  const log = { ...silentLog, warn: (message: string, fields?: object) => void (message.includes("left behind") && (said = fields)) };
  const w = newWorker(t, queue, { graceMs: 0, log });
  const began = promised();
  w.handle("deaf", () => (began.keep(), new Promise(() => {})));
  await w.start();
  await began.promise;
  await w.stop();
  assert.deepEqual(said, { queue, count: 1, handlers: "deaf" });
  const { rows } = await pool.query("select pawl.claim_steps($1, 10, 'second') as claimed", [queue]);
  assert.deepEqual(rows[0].claimed.map((c: any) => c.task_id), [task]);
});

test("the grace period does not wait for what waited to be given back", async (t) => {
  const queue = await newQueue();
  await submit(queue, "echo", 1);
  const w = newWorker(t, queue, { graceMs: 0 });
  const [began, over] = [promised(), promised()];
  w.handle("echo", async (step) => {
    began.keep();
    await aborted(step.signal);
    over.keep();
  });
  await w.start();
  await began.promise;
  const lane = w["lanes"][0]!;
  const stopClaiming = lane.stopClaiming.bind(lane);
  lane.stopClaiming = () => stopClaiming().then(() => over.promise);
  assert.ok(await within(w.stop(), patience));
});

test("run ends with its signal", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  w.handle("echo", (step) => step.input);
  const gone = new AbortController();
  const running = w.run({ signal: gone.signal });
  await until((await submit(queue, "echo", 1))[0]!, "complete");
  gone.abort();
  await running;
});

test("a step whose handler this worker lacks is left to the others", async (t) => {
  const queue = await newQueue("other");
  const [task] = await submit(queue, "other", 1);
  const without = newWorker(t, queue);
  without.handle("echo", () => 1);
  await without.start();
  await eventually(async () => (await pool.query(`select max(read_ct) as n from pgmq.q_${queue}`)).rows[0].n >= 1, "it was claimed");
  const withIt = newWorker(t, queue, { pollMs: 50, listen: false });
  withIt.handle("other", () => "mine");
  await withIt.start();
  assert.equal((await until(task!, "complete")).result, "mine");
});

test("a worker says what is wrong with its configuration", async (t) => {
  assert.throws(() => new Worker({ databaseUrl: url, queues: [] }), /name at least one queue/);
  assert.throws(() => new Worker({ databaseUrl: url, queues: ["Upper"] }), /no name of a step queue/);
  assert.throws(() => new Worker({ databaseUrl: url, queues: ["a", "a"] }), /named twice/);
  await assert.rejects(newWorker(t, "a").start(), /no handler/);
  const misspelt = newWorker(t, "no_such_queue_here");
  misspelt.handle("echo", () => 1);
  await assert.rejects(misspelt.start(), /no template, configuration or request names the queue.*Known queues/);
});
