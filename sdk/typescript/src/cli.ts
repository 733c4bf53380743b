#!/usr/bin/env node
/** pawl-ts throughput: how many steps one worker process of this SDK does in a second. */
import { parseArgs } from "node:util";

import { Client } from "./client.js";
import { findUrl, openPool, rows } from "./database.js";
import { silentLog } from "./log.js";
import { pause } from "./look.js";
import { Worker } from "./worker.js";

const usage = `usage: pawl-ts throughput [--database-url URL] [--steps N] [--concurrency N] [--queue NAME] [--json]

Sends N requests for tasks of one step, waits until an orchestrator has made their steps ready, then runs a worker that
does nothing in its handler until all are done, and prints steps per second. An orchestrator must be running.
`;

async function throughput(url: string, options: { steps: number; concurrency: number; queue: string; json: boolean }): Promise<void> {
  const { steps, concurrency, queue } = options;
  const pool = openPool(url, "pawl-ts-throughput", 2);
  const client = new Client({ databaseUrl: url });
  // The first makes the queue; its handler is nobody's business.
  await (await client.enqueue("throughput", 0, { queue })).decision({ timeoutMs: 60_000 });
  for (let sent = 1; sent < steps; sent += 1000) {
    const many = Array.from({ length: Math.min(1000, steps - sent) }, (_, i) => JSON.stringify({ handler: "throughput", queue, input: sent + i }));
    await rows(pool, "select pgmq.send_batch('orchestration_task_requests', $1::text[]::jsonb[])", [many]);
  }
  const deadline = performance.now() + 600_000;
  for (let ready = 0; ready < steps; ) {
    if (performance.now() > deadline) throw new Error(`waiting for ${steps} steps to be ready: only ${ready} are; does an orchestrator run?`);
    await pause(100);
    ready = Number((await rows(pool, `select count(*) as n from pgmq.q_${queue}`, []))[0].n);
  }
  const worker = new Worker({ databaseUrl: url, queues: [{ name: queue, concurrency }], log: silentLog });
  worker.handle("throughput", (step) => step.input);
  const began = performance.now();
  await worker.start();
  while (worker.done < steps) await pause(5);
  const seconds = (performance.now() - began) / 1000;
  await worker.stop();
  await client.close();
  await pool.end();
  const figures = { language: "typescript", steps, concurrency, seconds: round(seconds), steps_per_second: Math.round(steps / seconds) };
  const text = `${steps} steps in ${figures.seconds} s with ${concurrency} handlers at once: ${figures.steps_per_second} steps per second`;
  process.stdout.write((options.json ? JSON.stringify(figures) : text) + "\n");
}

function round(seconds: number): number {
  return Math.round(seconds * 100) / 100;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      "database-url": { type: "string" },
      steps: { type: "string", default: "10000" },
      concurrency: { type: "string", default: "64" },
      queue: { type: "string", default: "throughput_queue" },
      json: { type: "boolean", default: false },
    },
  });
  const steps = Number(values.steps);
  const concurrency = Number(values.concurrency);
  if (positionals.join(" ") !== "throughput" || !(steps >= 1) || !(concurrency >= 1) || !/^[a-z][a-z0-9_]{0,39}$/.test(values.queue!)) {
    process.stderr.write(usage);
    process.exitCode = 2;
    return;
  }
  await throughput(findUrl(values["database-url"]), { steps, concurrency, queue: values.queue!, json: values.json! });
}

main().catch((problem: unknown) => {
  process.stderr.write(`pawl-ts: ${problem instanceof Error ? problem.message : String(problem)}\n`);
  process.exitCode = 1;
});
