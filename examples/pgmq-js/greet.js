// PGMQ's official JavaScript client as a producer: asks for greetings and waits for the replies. It knows nothing of Pawl
// but two bodies: a task request, and a reply.
//
//   PAWL_DATABASE_URL=postgres://… node greet.js Ada Grace
import { randomUUID } from "node:crypto";

import { Pgmq } from "pgmq-js";

const url = new URL(process.env.PAWL_DATABASE_URL);
const pgmq = await Pgmq.new(
  {
    host: url.hostname, port: Number(url.port || 5432), database: url.pathname.slice(1),
    user: decodeURIComponent(url.username), password: decodeURIComponent(url.password),
    ssl: !["disable", null].includes(url.searchParams.get("sslmode")),
  },
  { skipExtensionCreation: true }, // PGMQ is there; it need not be an extension
);

const replies = "greet_replies";
await pgmq.queue.create(replies);

const names = new Map(process.argv.slice(2).map((name) => [randomUUID(), name]));
await pgmq.msg.sendBatch(
  "orchestration_task_requests",
  [...names].map(([request_id, name]) => ({ request_id, handler: "greet", queue: process.env.GREET_QUEUE, input: { name }, reply_to: replies })),
);

const deadline = Date.now() + 60_000;
while (names.size > 0 && Date.now() < deadline) {
  for (const { msgId, message } of await pgmq.msg.readBatch(replies, 30, 10)) {
    const name = names.get(message.request_id);
    if (!name) continue; // another one's: it is visible again in 30 s
    if (message.status === "completed") console.log(message.result);
    else console.error(`${name}: ${message.outcome} ${message.status ?? ""} ${message.error?.message ?? ""}`);
    names.delete(message.request_id);
    await pgmq.msg.delete(replies, msgId);
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await pgmq.close();
process.exitCode = names.size > 0 ? 1 : 0;
