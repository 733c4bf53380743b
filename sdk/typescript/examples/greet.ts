import { Worker, type Step } from "pawl";

const worker = new Worker({ queues: ["default_queue"] });

worker.handle("greet", async (step: Step<{ name: string }>) => `Hello, ${step.input.name}!`);

await worker.run(); // until Ctrl-C, then gracefully
