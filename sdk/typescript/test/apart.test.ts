/** Reports that the database refuses, and messages that somebody has locked: neither holds up another step. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import pg from "pg";

import type { Step } from "../src/index.js";
import { pause } from "../src/look.js";
import { aborted, client, eventually, limits, newQueue, newWorker, pool, promised, step, submit, until, url } from "./kit.js";

/**
 * A table of the user's whose rows the step of a template claims, and whose trigger lets no row leave the state that it is
 * claimed in, with an SQLSTATE. Returns the template.
 */
async function payments(queue: string, code: string): Promise<string> {
  const steps = [
    {
      no: 0, name: "run", handler: "pay", queue,
      claim: { default: { entity: queue, id: "${input.invoice}", from: "sent", into: "paying", revert_to: "sent", on_success: "paid", on_busy: "fail" } },
    },
  ];
  const entity = { table: `invoices_${queue}`, key: "number", status: "status", version: "version", module: queue, states: ["sent", "paying", "paid"], claim_limit: "5 minutes" };
  for (const sql of [
    `create table invoices_${queue} (number text primary key, status text not null, version int not null default 1)`,
    `insert into invoices_${queue} values ('A-1', 'sent', 1)`,
    `create function refuse_${queue}() returns trigger language plpgsql as
       $$ begin raise exception 'not this one' using errcode = '${code}'; end $$`,
    `create trigger refuse before update on invoices_${queue} for each row when (old.status = 'paying') execute function refuse_${queue}()`,
    `select pawl.register_entity('${queue}', '${JSON.stringify(entity)}', 'ann', 'payments are claimed')`,
    `select pawl.beat_janitor('${queue}')`,
    `select pawl.register_template('${JSON.stringify({ namespace: "tstest", name: queue, version: "1", steps })}')`,
  ]) {
    await pool.query(sql);
  }
  return `tstest/${queue}`;
}

/** A connection with an open transaction, as is left behind by one that was cut before the commit arrived. */
async function orphan(t: TestContext): Promise<pg.Client> {
  const tx = new pg.Client(url);
  tx.on("error", () => {});
  await tx.connect();
  t.after(() => tx.end());
  await tx.query("begin");
  return tx;
}

/** How many connections of a worker wait for a lock. */
async function waiters(name: string): Promise<number> {
  const { rows } = await pool.query("select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and application_name = $1", [name]);
  return rows[0].n;
}

for (const [code, after] of [
  ["23514", "complete"], ["23505", "complete"], ["P0001", "complete"], ["ABCDE", "complete"],
  ["22012", "error"], // could be the result's fault: a failure is reported in its place, and refused as well
] as const) {
  test(`a report that the user's table refuses with ${code} holds up no other`, async (t) => {
    const queue = await newQueue();
    const template = await payments(queue, code);
    const w = newWorker(t, queue);
    const paid = promised();
    w.handle("pay", () => (paid.keep(), "paid"));
    w.handle("echo", (step) => step.input);
    const refused = (await client.submit(template, { invoice: "A-1" })).requestId;
    await w.start();
    await paid.promise;
    for (const task of [...(await submit(queue, "echo", 1, 2, 3)), ...(await submit(queue, "echo", 4))]) await until(task, "complete");
    assert.equal((await step(refused))?.state, "in_progress");
    await pool.query(`drop trigger refuse on invoices_${queue}`);
    assert.equal((await until(refused, after)).deliveries, 1);
    assert.equal((await pool.query("select from pawl.entity_claims where entity = $1", [queue])).rows.length, 0);
  });
}

test("a refused report that was in a call with others goes alone", async (t) => {
  const queue = await newQueue();
  const template = await payments(queue, "23514");
  const refused = (await client.submit(template, { invoice: "A-1" })).requestId;
  const others = await submit(queue, "echo", ...Array.from({ length: 20 }, (_, i) => i));
  const w = newWorker(t, queue);
  const go = promised();
  let running = 0;
  const handler = async (step: Step) => {
    if (++running === 21) go.keep();
    await go.promise;
    return step.input;
  };
  w.handle("pay", handler).handle("echo", handler);
  await w.start();
  for (const [i, task] of others.entries()) assert.equal((await until(task, "complete")).result, i);
  assert.equal((await step(refused))?.state, "in_progress");
  await pool.query(`drop trigger refuse on invoices_${queue}`);
  await until(refused, "complete");
});

test("a locked message holds up no other", async (t) => {
  const queue = await newQueue("book");
  await newHandlers(queue, "long", "echo");
  await limits(queue, { leaseMs: 2_000, baseMs: 300_000 });
  const tx = await orphan(t);
  const w = newWorker(t, queue, { name: `locked-${queue}` });
  const [locked, cut, release] = [promised(), promised(), promised()];
  w.handle("book", async (step) => {
    await step.completeIn(tx, "booked");
    locked.keep();
    await cut.promise;
    throw new Error("the connection was cut");
  });
  w.handle("long", async (step) => {
    await Promise.race([release.promise, aborted(step.signal)]);
    step.signal.throwIfAborted();
    return "done";
  });
  w.handle("echo", (step) => step.input);
  const [[booked], [long]] = [await submit(queue, "book", 1), await submit(queue, "long", 1)];
  let most = 0;
  let watching = true;
  const watched = (async () => {
    for (; watching; await pause(20)) most = Math.max(most, await waiters(w.name));
  })();
  await w.start();
  await locked.promise;
  await until(long!, "in_progress");

  // Three leases later the other handler has its step yet, and it is the first delivery.
  const began = (await pool.query("select clock_timestamp() as now")).rows[0].now as Date;
  await eventually(async () => {
    const { rows } = await pool.query(`select from pgmq.q_${queue} where message->>'handler' = 'long' and read_ct = 1 and vt > $1::timestamptz + interval '6 s'`, [began]);
    return rows.length === 1;
  }, "its lease is extended again and again");

  // The report waits for the lock, and the others pass it.
  cut.keep();
  for (const task of await submit(queue, "echo", 1, 2, 3)) await until(task, "complete");
  release.keep();
  const row = await until(long!, "complete");
  assert.deepEqual([row.deliveries, row.result], [1, "done"]);
  assert.equal((await step(booked!))?.state, "in_progress");
  watching = false;
  await watched;
  assert.ok(most <= 4, `${most} connections waited for the lock at once`); // a lease, a call, a report alone, and one that is about to end
  await tx.query("rollback");
  assert.equal((await until(booked!, "waiting_for_retry")).error?.message, "the connection was cut");
});

test("a locked message does not keep a worker from giving others back", async (t) => {
  const queue = await newQueue("book");
  await newHandlers(queue, "long");
  const tx = await orphan(t);
  const w = newWorker(t, queue, { graceMs: 0 });
  const [locked, began] = [promised(), promised()];
  w.handle("book", async (step) => {
    await step.completeIn(tx, "booked");
    locked.keep();
    await aborted(step.signal);
    throw step.signal.reason;
  });
  w.handle("long", async (step) => {
    began.keep();
    await aborted(step.signal);
    throw step.signal.reason;
  });
  const [[booked], [long]] = [await submit(queue, "book", 1), await submit(queue, "long", 1)];
  await w.start();
  await Promise.all([locked.promise, began.promise]);
  await w.stop();
  const { rows } = await pool.query("select pawl.claim_steps($1, 10, 'second') as claimed", [queue]);
  assert.deepEqual(rows[0].claimed.map((c: any) => [c.task_id, c.delivery]), [[long, 2]]);
  assert.equal((await step(booked!))?.state, "in_progress");
});

/** More handlers for a queue, so that what limits says is theirs too. */
async function newHandlers(queue: string, ...names: string[]): Promise<void> {
  for (const name of names) await pool.query("select pawl.adhoc_template('default', $1, $2)", [name, queue]);
}
