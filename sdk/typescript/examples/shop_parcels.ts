// The parcels of shop/fulfil_order: serves the handler shop.ship on the queue shop_parcels.
import { createHash } from "node:crypto";

import pg from "pg";

import { Worker, type Step } from "pawl";

interface Order {
  order_id: string;
}

const databaseUrl = process.env["PAWL_DATABASE_URL"]!;
const shop = new pg.Pool({ connectionString: databaseUrl, max: 4 });
shop.on("error", () => {}); // a lost connection is replaced by the next call
const latencyMs = Number(process.env["SHOP_LATENCY_MS"] ?? 20);

const worker = new Worker({ databaseUrl, name: process.env["SHOP_WORKER"], queues: [process.env["SHOP_QUEUE"] ?? "shop_parcels"], concurrency: 16 });

// Asks the carrier for a parcel. A repeated call carries the same token, and the carrier answers with the same parcel.
worker.handle("shop.ship", async (step: Step<Order>) => {
  const { order_id } = step.input;
  const tracking = "PW" + createHash("sha256").update(step.token).digest("hex").slice(0, 10).toUpperCase();
  await shop.query("insert into shop.calls (service, token, order_id) values ('carrier', $1, $2)", [step.token, order_id]);
  await shop.query("insert into shop.parcels (token, order_id, tracking) values ($1, $2, $3) on conflict do nothing", [step.token, order_id, tracking]);
  await new Promise((resolve) => setTimeout(resolve, latencyMs * (1 + 2 * Math.random()))); // as a service would take
  return { tracking };
});

await worker.run({ untilEof: process.argv.includes("--until-eof") }).catch((problem: Error) => {
  console.error(`shop_parcels: ${problem.message}`);
  process.exitCode = 1;
});
process.exit(); // also while a handler that ignored its signal keeps something open
