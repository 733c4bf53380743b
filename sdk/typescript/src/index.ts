/** Workers and producers for Pawl: durable workflows on one Postgres with PGMQ. */
export { Client, Submission, type ClientConfig, type WaitOptions } from "./client.js";
export type { Queryable } from "./database.js";
export * from "./errors.js";
export { silentLog, standardLog, type Log } from "./log.js";
export { newRequestId, type EnqueueOptions, type RequestOptions, type SendOptions } from "./request.js";
export { Step, type Parser } from "./step.js";
export type { Status, Task } from "./task.js";
export type { Decision } from "./waiter.js";
export { Worker, type Handler, type HandlerOptions, type Queue, type RunOptions, type WorkerConfig } from "./worker.js";
