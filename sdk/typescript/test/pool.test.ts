/** Workers and clients with a pool of the caller's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import pg from "pg";

import { Client } from "../src/index.js";
import { eventually, limits, newQueue, newWorker, patience, promised, submit, until, url, visibleAt } from "./kit.js";

/** Settings of a connection as fields, without a URL. */
function fields(): pg.PoolConfig {
  const { hostname, port, username, password, pathname } = new URL(url);
  return { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) };
}

test("a pool made of fields lends its password to heartbeats and to listening", async (t) => {
  const pool = new pg.Pool({ ...fields(), max: 2 });
  t.after(() => pool.end());
  const queue = await newQueue();
  await limits(queue, { leaseMs: 3_000 });
  const w = newWorker(t, queue, { databaseUrl: undefined, pool });
  const began = promised();
  const extended = promised();
  w.handle("echo", () => (began.keep(), extended.promise));
  await w.start();
  const c = new Client({ pool });
  t.after(() => c.close());
  for (const one of [w, c]) assert.ok(!inspect(one, { depth: 9 }).includes(fields().password as string), "none prints the password");
  const [task] = await submit(queue, "echo", 1);
  const waited = c.wait(task!, { timeoutMs: 2 * patience });
  await eventually(() => w["listener"]?.proven, "the worker hears");
  await eventually(() => c["waiter"]["listener"]?.proven, "the client hears");
  await began.promise;
  const first = await visibleAt(queue, task!);
  await eventually(async () => (await visibleAt(queue, task!)) > first, "the lease is extended");
  extended.keep();
  await waited;
  assert.equal((await until(task!, "complete")).deliveries, 1);
});

test("leases are extended while handlers hold the pool's connections", async (t) => {
  const pool = new pg.Pool({ ...fields(), max: 1 });
  t.after(() => pool.end());
  const queue = await newQueue();
  await limits(queue, { leaseMs: 3_000 });
  const tasks = await submit(queue, "echo", ...Array.from({ length: 300 }, () => 1));
  const w = newWorker(t, queue, { databaseUrl: undefined, pool, concurrency: 4 });
  const holding = promised<string>();
  const extended = promised();
  let held = false;
  w.handle("echo", async (step) => {
    if (held) return extended.promise; // the slots stay taken
    if (w["lanes"][0]!["waiting"].length < 4) return;
    held = true; // and more wait than the other slots may take: they are given back
    const connection = await pool.connect();
    holding.keep(step.taskId);
    await extended.promise;
    connection.release();
  });
  await w.start();
  const task = await holding.promise;
  const first = await visibleAt(queue, task);
  await eventually(async () => (await visibleAt(queue, task)) > first, "the lease is extended");
  extended.keep();
  for (const one of tasks) await until(one, "complete");
});
