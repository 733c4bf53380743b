// The worker of `make throughput` for TypeScript: its handler does nothing.
import { Worker } from "pawl";

const worker = new Worker({ queues: [{ name: process.env["PAWL_QUEUE"]!, concurrency: Number(process.env["PAWL_CONCURRENCY"]) }] });

worker.handle("nothing", async () => null);

await worker.run().catch((problem: Error) => {
  console.error(`throughput_worker: ${problem.message}`);
  process.exitCode = 1;
});
process.exit();
