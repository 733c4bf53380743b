import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";

import { Permanent, newRequestId } from "../src/index.js";
import { clean } from "../src/json.js";
import { Look, again } from "../src/look.js";
import { AcceptingClient, makeStep } from "../src/testing.js";

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

test("what the package's types import comes with it", async () => {
  const { dependencies } = JSON.parse(await readFile("package.json", "utf8"));
  for (const file of (await readdir("dist")).filter((name) => name.endsWith(".d.ts"))) {
    for (const [, name] of (await readFile(`dist/${file}`, "utf8")).matchAll(/from "([^.":]+)"/g)) {
      for (const wanted of [name!, `@types/${name}`]) assert.ok(wanted in dependencies, `${file} wants ${wanted}`);
    }
  }
});
