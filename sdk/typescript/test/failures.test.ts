import assert from "node:assert/strict";
import { test } from "node:test";

import { Failed, Permanent, Rejected, RetryAfter, silentLog, type Step } from "../src/index.js";
import { eventually, limits, newQueue, newWorker, pool, step, submit, until } from "./kit.js";

test("an error is tried again, with the type that it says or its class", async (t) => {
  const queue = await newQueue();
  await limits(queue, { baseMs: 1 });
  const w = newWorker(t, queue);
  class CardDeclined extends Error {}
  w.handle("echo", (step) => {
    if (step.attempt === 1) throw new CardDeclined("no money");
    if (step.attempt === 2) throw new Failed("still none", { type: "card_declined" });
    return step.attempt;
  });
  await w.start();
  const [task] = await submit(queue, "echo", 1);
  const row = await until(task!, "complete");
  assert.deepEqual([row.result, row.failures], [3, 2]);
  const { rows } = await pool.query("select to_state from pawl.audit where task_id = $1 and step = 'run' and to_state = 'waiting_for_retry'", [task]);
  assert.equal(rows.length, 2);
});

test("a log has the texts of errors when it is told to", async (t) => {
  for (const logErrors of [false, true]) {
    const queue = await newQueue();
    const said: object[] = [];
    const w = newWorker(t, queue, { logErrors, log: { ...silentLog, info: (message: string, fields?: object) => void (message.startsWith("running handler") && said.push(fields!)) } });
    w.handle("echo", (step: Step<string>) => {
      throw new Permanent(`no stock for ${step.input}`);
    });
    await w.start();
    const [task] = await submit(queue, "echo", "S-1");
    await until(task!, "error");
    assert.deepEqual(said.map((fields) => (fields as { error?: string }).error), [logErrors ? "no stock for S-1" : undefined]);
  }
});

test("errors of each kind", async (t) => {
  const queue = await newQueue();
  await limits(queue, { baseMs: 300_000 }); // a retry is not over before it is seen
  const w = newWorker(t, queue);
  class Declined extends Error {}
  w.handle("echo", (step: Step<string>) => {
    switch (step.input) {
      case "permanent":
        throw new Permanent("never", { type: "bad_card" });
      case "rejected":
        throw new Rejected("will not");
      case "later":
        throw new RetryAfter("busy", 3_600_000);
      case "class":
        throw new Declined("no\0 money \ud800");
      case "wrapped":
        throw new Error("outer", { cause: new Permanent("inner", { type: "deep" }) });
    }
    throw "a text"; // eslint-disable-line
  });
  await w.start();
  const [permanent, rejected, later, byClass, wrapped, text] = await submit(queue, "echo", "permanent", "rejected", "later", "class", "wrapped", "text");
  assert.deepEqual((await until(permanent!, "error")).error, { type: "bad_card", message: "never", retryable: false });
  assert.deepEqual((await until(rejected!, "error")).error, { type: "error", message: "will not", retryable: false });
  assert.deepEqual((await until(later!, "waiting_for_retry")).error, { type: "error", message: "busy", retryable: true, retry_after: 3600 });
  assert.deepEqual((await until(byClass!, "waiting_for_retry")).error, { type: "Declined", message: "no\ufffd money \ufffd", retryable: true });
  assert.equal((await until(wrapped!, "error")).error?.type, "deep");
  assert.equal((await until(text!, "waiting_for_retry")).error?.message, "a text");
});

test("an error without a text fails its step, and no more", async (t) => {
  const queue = await newQueue();
  await limits(queue, { baseMs: 300_000 }); // a retry is not over before it is seen
  const w = newWorker(t, queue);
  const unreadable = () => {
    throw new Error("not readable");
  };
  w.handle("echo", (step: Step<string>) => {
    switch (step.input) {
      case "number":
        throw new Permanent("declined", { type: 402 as unknown as string });
      case "object":
        throw Object.assign(new Error(), { message: { code: 402 } });
      case "name":
        throw Object.assign(new Error("named"), { name: 402 });
      case "symbol":
        throw Object.assign(new Error(), { message: Symbol("no") });
      case "getter":
        throw Object.defineProperty(new Error(), "message", { get: unreadable });
      case "proxy":
        throw new Proxy({}, { getPrototypeOf: unreadable });
    }
    return "goes on";
  });
  await w.start();
  const [number, object, name, symbol, getter, proxy] = await submit(queue, "echo", "number", "object", "name", "symbol", "getter", "proxy");
  assert.deepEqual((await until(number!, "error")).error, { type: "402", message: "declined", retryable: false });
  assert.deepEqual((await until(object!, "waiting_for_retry")).error, { type: "error", message: "[object Object]", retryable: true });
  assert.deepEqual((await until(name!, "waiting_for_retry")).error, { type: "402", message: "named", retryable: true });
  assert.deepEqual((await until(symbol!, "waiting_for_retry")).error, { type: "error", message: "Symbol(no)", retryable: true });
  for (const one of [getter, proxy]) {
    const error = { type: "error", message: "the handler threw something without a text", retryable: true };
    assert.deepEqual((await until(one!, "waiting_for_retry")).error, error);
  }
  assert.equal((await until((await submit(queue, "echo", "fine"))[0]!, "complete")).result, "goes on");
});

test("an input that does not fit fails for good", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  const input = {
    parse(value: unknown): number {
      if (typeof value !== "number") throw new TypeError("a number is wanted");
      return value;
    },
  };
  w.handle("echo", (step: Step<number>) => step.input, { input });
  await w.start();
  const [bad, good] = await submit(queue, "echo", "text", 7);
  assert.deepEqual((await until(bad!, "error")).error, { type: "invalid_input", message: "reading input: a number is wanted", retryable: false });
  assert.equal((await until(good!, "complete")).result, 7);
});

test("results that jsonb refuses fail for good, and hurt no others", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  const circular: any = {};
  circular.itself = circular;
  let deep: unknown = 1;
  for (let i = 0; i < 70; i++) deep = [deep];
  const outputs: Record<string, unknown> = {
    nul: "a\0b", surrogate: "\ud800", nan: { x: [NaN] }, bigint: 1n, map: { x: new Map([[1, 2]]) }, set: new Set([1]), promise: [Promise.resolve(1)], circular, deep, function: () => 1,
    large: "x".repeat((1 << 20) + 1),
    largeAsJsonb: new Array(400_000).fill(1), // jsonb writes a blank after each comma
    fine: { undefined: undefined, text: "\\u0000 is six characters", nested: [[]] },
  };
  w.handle("echo", (step: Step<string>) => outputs[step.input]);
  const names = Object.keys(outputs);
  const tasks = await submit(queue, "echo", ...names);
  await w.start();
  for (const [i, name] of names.entries()) {
    const row = await eventually(async () => {
      const found = await step(tasks[i]!);
      return found && ["error", "complete"].includes(found.state) ? found : undefined;
    }, `${name} has ended`);
    if (name === "fine") assert.deepEqual(row.result, { text: "\\u0000 is six characters", nested: [[]] });
    else assert.deepEqual([row.state, row.error?.type, row.error?.retryable], ["error", "invalid_result", false], name);
  }
});

test("a handler that returns nothing completes with null", async (t) => {
  const queue = await newQueue();
  const w = newWorker(t, queue);
  w.handle("echo", () => {});
  await w.start();
  const row = await until((await submit(queue, "echo", 1))[0]!, "complete");
  assert.equal(row.result, null);
});
