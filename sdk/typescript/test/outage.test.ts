import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { inspect } from "node:util";

import pg from "pg";

import { Client, ClientError, ConfigError, LeaseLost, newRequestId, silentLog, type Step } from "../src/index.js";
import { within } from "../src/look.js";
import { aborted, eventually, limits, mutableWay, newQueue, newWorker, patience, pool, promised, silentWay, step, submit, until, url, visibleAt } from "./kit.js";

/** Ends all connections of a worker. */
async function cut(worker: string): Promise<number> {
  const { rows } = await pool.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [worker.slice(0, 63)]);
  return rows.length;
}

test("connections cut in the middle cost no result", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue, { name: `cut-${queue}` });
  let runs = 0;
  w.handle("echo", async (step) => {
    runs++;
    await new Promise((resolve) => setTimeout(resolve, 5));
    return step.input;
  });
  await w.start();
  const inputs = Array.from({ length: 100 }, (_, i) => i);
  const sent = submit(queue, "echo", ...inputs);
  let cuts = 0;
  await eventually(async () => {
    cuts += await cut(w.name);
    return cuts >= 10;
  }, "ten connections were cut");
  for (const [i, task] of (await sent).entries()) assert.equal((await until(task, "complete")).result, i);
  assert.ok(runs >= 100);
});

test("a result is kept while the database is away, and reported again", async (t) => {
  const queue = await newQueue();
  let refusals = 0;
  const log = { ...silentLog, warn: (message: string) => void (message.startsWith("calling the database") && refusals++) };
  const w = newWorker(t, queue, { name: `away-${queue}`, log });
  const began = promised();
  const go = promised();
  w.handle("echo", async () => {
    began.keep();
    await go.promise;
    return "kept";
  });
  await w.start();
  const [task] = await submit(queue, "echo", 1);
  await began.promise;
  // Its queue refuses every report for a while.
  await pool.query(`alter table pgmq.q_${queue} rename to q_${queue}_away`);
  go.keep();
  await cut(w.name);
  await eventually(() => refusals > 0, "a call was refused");
  await pool.query(`alter table pgmq.q_${queue}_away rename to q_${queue}`);
  const row = await until(task!, "complete");
  assert.deepEqual([row.result, row.attempt, row.deliveries], ["kept", 1, 1]);
});

test("completeIn completes the step with the caller's transaction, or not at all", async (t) => {
  const queue = await newQueue();
  await pool.query(`create table ledger_${queue} (n int)`);
  await limits(queue, { baseMs: 300_000 }); // the retry is not over before it is seen
  const w = newWorker(t, queue);
  const refused = promised<unknown>();
  w.handle("echo", async (step: Step<string>) => {
    const tx = new pg.Client(url);
    await tx.connect();
    try {
      await tx.query("begin");
      await tx.query(`insert into ledger_${queue} values (1)`);
      if (step.input === "late") {
        await pool.query("select pawl.cancel_task($1, 'test', 'test')", [step.taskId]);
        await pool.query(`delete from pgmq.q_${queue} where message->>'task_id' = $1`, [step.taskId]);
      }
      try {
        await step.completeIn(tx, { charged: step.input });
      } catch (problem) {
        refused.keep(problem);
        throw problem;
      }
      await tx.query(step.input === "commits" ? "commit" : "rollback");
      return "not used";
    } finally {
      await tx.end();
    }
  });
  await w.start();
  const [commits, forgets] = await submit(queue, "echo", "commits", "forgets");
  assert.deepEqual((await until(commits!, "complete")).result, { charged: "commits" });
  assert.equal((await until(forgets!, "waiting_for_retry")).error?.type, "transaction_not_committed");
  const [late] = await submit(queue, "echo", "late");
  assert.ok((await refused.promise) instanceof LeaseLost);
  assert.equal((await step(late!))?.state, "cancelled");
  await w.stop();
  assert.equal((await pool.query(`select from ledger_${queue}`)).rows.length, 1);
});

test("a lease ends by the clock while the database does not answer, not even to who connects", async (t) => {
  const queue = await newQueue();
  await limits(queue, { leaseMs: 3_000 });
  const [task] = await submit(queue, "echo", 1);
  const way = await mutableWay(t);
  let failures = 0;
  const log = { ...silentLog, warn: (message: string) => void (message.startsWith("extending leases: it failed") && failures++) };
  const w = newWorker(t, queue, { databaseUrl: way.url, log, graceMs: 0 });
  const began = promised();
  const why = promised<unknown>();
  w.handle("echo", async (step) => {
    began.keep();
    why.keep(await aborted(step.signal));
  });
  await w.start();
  await began.promise;
  const first = await visibleAt(queue, task!);
  await eventually(async () => (await visibleAt(queue, task!)) > first, "the lease is extended");
  way.mute();
  assert.ok((await why.promise) instanceof LeaseLost);
  assert.ok(failures <= 1, "the attempt to connect is not waited for");
});

test("a worker stops, and listens anew, though LISTEN is never answered", async (t) => {
  const way = await silentWay(t, "listen ");
  const w = newWorker(t, await newQueue(), { databaseUrl: way.url });
  w.handle("echo", () => 1);
  await w.start();
  await eventually(() => way.count() >= 2, "it has given the first up");
  assert.ok(await within(w.stop(), 10_000), "it has stopped");
  const c = new Client({ databaseUrl: way.url });
  const before = way.count();
  const gone = new AbortController();
  const waiting = assert.rejects(c.wait(newRequestId(), { signal: gone.signal }));
  await eventually(() => way.count() > before, "the client listens");
  assert.ok(await within(c.close(), 10_000), "it is closed");
  gone.abort();
  await waiting;
});

test("who waits at a database that was never reached is told so", async () => {
  const at = (change: (to: URL) => void) => {
    const to = new URL(url);
    change(to);
    return to.toString();
  };
  for (const [databaseUrl, says] of [
    [at((to) => (to.port = "1")), /reaching the database .*ECONNREFUSED.*check PAWL_DATABASE_URL/],
    [at((to) => (to.pathname = "no_such_database")), /no_such_database.* does not exist/],
    [at((to) => ((to.username = "nobody"), (to.password = "verysecret"))), /nobody/],
  ] as const) {
    const c = new Client({ databaseUrl });
    const told = c.wait(newRequestId(), { timeoutMs: patience }).then(() => undefined, (problem: unknown) => problem);
    const problem = await told;
    assert.ok(problem instanceof ClientError && says.test(problem.message), inspect(problem));
    assert.doesNotMatch(problem.message, /verysecret/);
    await c.close();
  }
});

test("closing a client ends its waits, and those that come later", async () => {
  const c = new Client({ databaseUrl: url });
  const waits = [c.wait(newRequestId()), c.wait(newRequestId())].map((one) => assert.rejects(one, /the client is closed/));
  await c.close();
  await Promise.all(waits);
  await assert.rejects(c.wait(newRequestId()), (problem: Error) => problem instanceof ClientError && /the client is closed/.test(problem.message));
});

test("a program that cannot reach its database says so in one line, without the password", async () => {
  for (const [program, host] of [["examples/greet.js", "127.0.0.1"], ["examples/producer.js", "localhost"]] as const) {
    const env = { ...process.env, PAWL_DATABASE_URL: `postgres://ann:verysecret@${host}:1/shop` };
    const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
      execFile(process.execPath, [`build/${program}`, "Ada"], { env }, (problem, _, stderr) => resolve({ code: problem?.code, stderr })),
    );
    assert.equal(code, 1, stderr);
    assert.match(stderr, new RegExp(`^[^\\n]* reaching the database shop at ${host}:1: [^\\n]*ECONNREFUSED[^\\n]*check PAWL_DATABASE_URL[^\\n]*\\n$`));
    assert.doesNotMatch(stderr, /verysecret/);
  }
});

test("a text that is no database URL is not repeated", () => {
  assert.throws(() => new Client({ databaseUrl: "postgres://ann:verysecret@host:port/shop" }), (problem: Error) => {
    assert.ok(problem instanceof ConfigError);
    assert.doesNotMatch(inspect(problem), /verysecret/);
    return true;
  });
});
