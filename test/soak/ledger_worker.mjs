// The soak's worker in TypeScript's SDK: it writes what it does into a file that no fault reaches, before it answers.
import { randomBytes } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Failed, Permanent, Worker } from "../../sdk/typescript/dist/index.js";

const name = process.env.PAWL_NAME;
const book = openSync(process.env.PAWL_LEDGER, "a", 0o600);
const worker = new Worker({ queues: ["fire_queue"], concurrency: 8, name: `${name}-${process.pid}`, graceMs: 5000 });

worker.handle("fire.work", async (step) => {
  const told = step.input;
  const needs = Object.fromEntries(Object.entries(step.dependencies).map(([need, result]) => [need, result.nonce]));
  const nonce = randomBytes(13).toString("hex");
  const write = (what) =>
    writeSync(book, JSON.stringify({ what, task: step.taskId, step: step.name, attempt: step.attempt, delivery: step.delivery, token: step.token, nonce, needs, worker: name }) + "\n");
  write("start");
  await pause(told.ms ?? 0, undefined, { signal: step.signal });
  if (step.attempt <= (told.fail ?? 0)) throw new (told.permanent ? Permanent : Failed)("the input says so", { type: "as_told" });
  write("done");
  return { nonce };
});

await worker.run();
