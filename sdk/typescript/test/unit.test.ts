import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { inspect } from "node:util";

import pg from "pg";

import { Client, Permanent, Step, Submission, Worker, newRequestId, silentLog } from "../src/index.js";
import { Apart } from "../src/apart.js";
import { Delivery, Outcome } from "../src/delivery.js";
import { clean, encode } from "../src/json.js";
import { Look, again } from "../src/look.js";
import { AcceptingClient, makeStep } from "../src/testing.js";

const client = new Client({ databaseUrl: "postgres://localhost/nowhere" });

test("an emptied queue is looked at again in a series, then idly", () => {
  const look = new Look(() => 5_000);
  look.found(10, 0, 1_000);
  for (const after of again) {
    assert.equal(look.at, 1_000 + after);
    look.found(10, 0, look.at - 1); // a look that a report brought along does not put it off
    assert.equal(look.at, 1_000 + after);
    look.found(10, 0, look.at);
  }
  assert.equal(look.at, 1_855 + 5_000);
  look.found(10, 3, 7_000); // some work: the series begins anew
  assert.equal(look.at, 7_000 + again[0]!);
  look.found(10, 10, 0); // a full batch: look at once
  assert.equal(look.at, 0);
});

test("texts are made storable and cut between characters", () => {
  assert.equal(clean("a\0b\ud800", 100), "a\ufffdb\ufffd");
  assert.equal(clean("ééé", 3), "é…");
});

test("a result that JSON would make another one of is refused", () => {
  async function* pages() {
    yield 1;
  }
  function* numbers() {
    yield 1;
  }
  const refused: [unknown, RegExp][] = [
    [pages(), /a generator or stream/], [numbers(), /generator cannot be written/i], [new URLSearchParams("a=1"), /a URLSearchParams cannot/],
    [new Date(NaN), /Invalid Date/], [new Error("no"), /an Error cannot be written/], [new TypeError("no"), /an Error/], [new Number(NaN), /NaN/],
    [Number.NEGATIVE_INFINITY, /Infinity/], [new Map(), /a Map/], [new Set(), /a Set/], [Promise.resolve(1), /await it/], [1n, /bigint/],
  ];
  for (const [value, says] of refused) {
    for (const whole of [value, { list: [value] }]) assert.throws(() => encode(whole), (problem: Error) => problem.name === "InvalidBody" && says.test(problem.message), inspect(value));
  }
  class Money {
    constructor(readonly cents: number) {}
  }
  const written: [unknown, string][] = [
    [new Date(0), '"1970-01-01T00:00:00.000Z"'], [new Number(1), "1"], [new String("a"), '"a"'], [null, "null"], [[null], "[null]"], [{}, "{}"],
    [new Money(1), '{"cents":1}'], [{ toJSON: () => null }, "null"], [new Uint8Array([7]), '{"0":7}'], [undefined, "null"],
  ];
  for (const [value, text] of written) assert.equal(encode(value), text);
});

test("nothing that is printed or written as JSON tells the password", () => {
  const databaseUrl = "postgres://ann:verysecret@localhost/nowhere";
  const own = new Client({ databaseUrl });
  const submission = new Submission(own, { requestId: newRequestId(), msgId: "0" });
  const lane = { config: { calls: { pool: new pg.Pool({ connectionString: databaseUrl }) } } };
  const delivery = new Delivery({ msg_id: 1, read_ct: 1, task_id: newRequestId(), step: "run", attempt: 1, delivery: 1, handler: "echo" }, lane as any, 0, 0);
  for (const one of [own, submission, new Worker({ databaseUrl, queues: ["a"] }), delivery, new Step(delivery)]) {
    assert.doesNotMatch(inspect(one, { depth: 20 }), /verysecret/);
    assert.doesNotMatch(JSON.stringify(one), /verysecret/);
  }
  assert.equal(encode(submission), `{"requestId":"${submission.requestId}"}`);
});

test("request ids are UUIDs of version 7, in the order of time", () => {
  const id = newRequestId();
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(Math.abs(parseInt(id.replaceAll("-", "").slice(0, 12), 16) - Date.now()) < 60_000);
});

test("handlers can be tested without a database", async () => {
  const step = makeStep({ input: { n: 1 }, dependencies: { price: { cents: 5 } }, config: { vat: 19 } });
  assert.equal(step.dependency<{ cents: number }>("price").cents, 5);
  assert.deepEqual(step.config(), { vat: 19 });
  assert.throws(() => step.dependency("other"), Permanent);
  const tx = new AcceptingClient();
  await step.completeIn(tx, { done: true });
  assert.deepEqual(tx.results, [{ done: true }]);
});

test("of refused reports a lane keeps a thousand, of others all, with growing pauses", () => {
  const dropped: unknown[] = [];
  const apart = new Apart({ letGo: (d: unknown) => void dropped.push(d) } as any, {} as any, silentLog);
  const outcomes = Array.from({ length: 1_002 }, () => new Outcome({ where: () => ({}) } as any, { status: "complete" }));
  const refused = Object.assign(new Error("not this one"), { severity: "ERROR", code: "ABCDE" });
  apart.add(outcomes.slice(0, 1_000));
  apart.add(outcomes.slice(1_000, 1_001), refused);
  assert.deepEqual(dropped, [outcomes[1_000]!.delivery]);
  const [last] = outcomes.slice(1_001);
  for (const pause of [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
    const before = performance.now();
    apart.add([last!], Object.assign(new Error(), { code: "ECONNRESET" }));
    assert.ok(last!.retryAt >= before + pause && last!.retryAt <= performance.now() + pause, `a pause of ${pause} ms`);
  }
  assert.equal(dropped.length, 1);
});

test("a pool is refused where a transaction is wanted", async () => {
  const pool = new pg.Pool();
  // @ts-expect-error the types refuse it too
  await assert.rejects(makeStep().completeIn(pool, 1), /completing step: this is a pool.*await pool\.connect\(\)/);
  // @ts-expect-error the types refuse it too
  await assert.rejects(client.submit("shop/order", 1, { tx: pool }), /sending requests: this is a pool/);
});

test("an option that does not exist is refused, with the one that was meant", async () => {
  const databaseUrl = "postgres://localhost/nowhere";
  const options = (given: object): any => given; // as without types
  assert.throws(() => new Client(options({ databaseURL: databaseUrl })), /making client: there is no option "databaseURL"; did you mean "databaseUrl"\?/);
  assert.throws(() => new Worker(options({ databaseUrl, queues: ["a"], graceMS: 1 })), /did you mean "graceMs"\?/);
  assert.throws(() => new Worker(options({ databaseUrl, queues: [{ name: "a", concurency: 1 }] })), /did you mean "concurrency"\?/);
  assert.throws(() => new Worker(options({ databaseUrl, queues: ["a"], retries: 3 })), /there is no option "retries": there are concurrency, databaseUrl, /);
  const w = new Worker({ databaseUrl, queues: [{ name: "a", concurrency: undefined }], concurrency: undefined, log: silentLog });
  assert.throws(() => w.handle("echo", () => 1, options({ inputs: {} })), /registering handler "echo": .* did you mean "input"\?/);
  assert.throws(() => w.handle("echo", undefined as any), /registering handler "echo": it is no function/);
  await assert.rejects(w.run(options({ untilEOF: true })), /did you mean "untilEof"\?/);
  await assert.rejects(client.submit("shop/order", 1, options({ run_at: new Date() })), /submitting: there is no option "run_at"; did you mean "runAt"\?/);
  await assert.rejects(client.submitMany("shop/order", [options({ input: 1, ky: "a" })]), /did you mean "key"\?/);
  await assert.rejects(client.submitMany("shop/order", [{ input: 1 }], options({ key: "a" })), /there is no option "key"/);
  await assert.rejects(client.enqueue("echo", 1, options({ qeue: "a" })), /did you mean "queue"\?/);
  await assert.rejects(client.wait(newRequestId(), options({ timeout: 1 })), /did you mean "timeoutMs"\?/);
});

test("what the package's types import comes with it", async () => {
  const { dependencies } = JSON.parse(await readFile("package.json", "utf8"));
  for (const file of (await readdir("dist")).filter((name) => name.endsWith(".d.ts"))) {
    for (const [, name] of (await readFile(`dist/${file}`, "utf8")).matchAll(/from "([^.":]+)"/g)) {
      for (const wanted of [name!, `@types/${name}`]) assert.ok(wanted in dependencies, `${file} wants ${wanted}`);
    }
  }
});
