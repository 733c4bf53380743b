/** The worker of docs/workers.md, taken from the page. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";

import { client, patience, url } from "./kit.js";

test("the worker of docs/workers.md greets", { timeout: 3 * patience }, async () => {
  const page = await readFile("../../docs/workers.md", "utf8");
  const script = /```js\n(\/\/ greet\.mjs\n.*?)```/s.exec(page)?.[1];
  assert.ok(script, "docs/workers.md has greet.mjs");
  await mkdir("build/doc", { recursive: true });
  await writeFile("build/doc/greet.mjs", script);
  const task = await client.enqueue<string>("greet", { name: "Ada" }, { queue: "greetings_queue" });
  await task.decision({ timeoutMs: patience }); // its queue is there
  const worker = spawn(process.execPath, ["build/doc/greet.mjs"], { env: { ...process.env, PAWL_DATABASE_URL: url }, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(worker, "exit");
  try {
    assert.equal(await task.wait({ timeoutMs: patience }), "Hello, Ada!");
  } finally {
    worker.kill("SIGTERM");
  }
  assert.deepEqual(await ended, [0, null]);
});
