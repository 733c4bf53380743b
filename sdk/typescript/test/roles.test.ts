import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { before, test } from "node:test";

import { Client } from "../src/index.js";
import { client, newQueue, newWorker, patience, pool, url } from "./kit.js";

before(() => pool.query("select pawl.install_roles()"));

/** A login of its own with what a group may do. It goes away with the server. */
async function login(group?: string): Promise<{ role: string; url: string }> {
  const role = `ts_${randomBytes(5).toString("hex")}`;
  const password = randomBytes(8).toString("hex");
  await pool.query(`create role ${role} login password '${password}' ${group ? `in role ${group}` : ""}`);
  const address = new URL(url);
  address.username = role;
  address.password = password;
  return { role, url: address.toString() };
}

test("works and submits with the least rights", async (t) => {
  const queue = await newQueue("size");
  const own = await login();
  await pool.query("select pawl.grant_queue($1, $2)", [own.role, queue]);
  const w = newWorker(t, queue, { databaseUrl: own.url });
  w.handle("size", (step) => step.input.length);
  await w.start();
  const producer = new Client({ databaseUrl: (await login("pawl_producer")).url });
  t.after(() => producer.close());
  const sent = await producer.enqueue("size", "x".repeat(300_000), { queue });
  assert.ok(sent.trail.decision, "it is a task at once");
  assert.equal(await client.wait(sent.requestId, { timeoutMs: patience }), 300_000);

  // It may send, not read: who waits is told, whether the task is known or only the request.
  for (const what of [sent, sent.requestId]) await assert.rejects(producer.wait(what, { timeoutMs: patience }), /waiting: permission denied .*pawl_operator/);
  const other = newWorker(t, await newQueue("size"), { databaseUrl: own.url });
  other.handle("size", () => 1);
  await assert.rejects(other.start(), /grant_queue/);
});
