// The worker that the conformance kit runs for TypeScript.
import { Failed, Permanent, Rejected, RetryAfter, Worker, type Step } from "pawl";

interface Told {
  type: string;
  message: string;
  seconds: number;
}

const grace = process.env["PAWL_GRACE_SECONDS"];
const worker = new Worker({ queues: [process.env["PAWL_QUEUE"]!], graceMs: grace ? Number(grace) * 1000 : undefined });

worker.handle("echo", (step) => step.input);
worker.handle("gather", (step) => ({ input: step.input, dependencies: step.dependencies, config: step.config() }));
worker.handle("facts", (step: Step<{ fail_first?: boolean }>) => {
  if (step.input.fail_first && step.attempt === 1) throw new Error(`token ${step.token}`);
  return { attempt: step.attempt, token: step.token, step: step.name, correlation_id: step.correlationId ?? null, config: step.config() ?? null };
});
worker.handle("sleep", (step: Step<{ ms: number }>) => {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve({ slept: step.input.ms }), step.input.ms);
    step.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(step.signal.reason);
    });
  });
});
worker.handle("fail_once", (step) => {
  if (step.attempt === 1) throw new Error("as told");
  return { attempt: step.attempt };
});
worker.handle("fail", (step: Step<Told>) => {
  throw new Failed(step.input.message, { type: step.input.type });
});
worker.handle("fail_permanently", (step: Step<Told>) => {
  throw new Permanent(step.input.message, { type: step.input.type });
});
worker.handle("reject", (step: Step<Told>) => {
  throw new Rejected(step.input.message, { type: step.input.type });
});
worker.handle("retry_later", (step: Step<Told>) => {
  throw new RetryAfter("later", step.input.seconds * 1000);
});
worker.handle("blow_up", (step) => step.input.no.such.field);
worker.handle("bad_output", () => "a\0b");
worker.handle("crash", (step) => {
  if (step.delivery === 1) process.exit(7);
  return { delivery: step.delivery };
});

await worker.run().catch((problem: Error) => {
  console.error(`conformance_worker: ${problem.message}`);
  process.exitCode = 1;
});
process.exit();
