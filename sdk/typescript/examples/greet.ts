import { Worker, type Step } from "pawl";

const worker = new Worker({ queues: ["default_queue"] });

worker.handle("greet", async (step: Step<{ name: string }>) => `Hello, ${step.input.name}!`);

// Until Ctrl-C, then gracefully.
await worker.run().catch((problem: Error) => {
  console.error(`greet: ${problem.message}`);
  process.exitCode = 1;
});
process.exit(); // also while a handler that ignored its signal keeps something open
