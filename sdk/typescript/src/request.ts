import { randomBytes } from "node:crypto";

import type { Queryable } from "./database.js";
import { ConfigError, InvalidBody, InvalidRequest } from "./errors.js";
import { encode } from "./json.js";
import type { Names } from "./options.js";

/** What a request may say beside what is to be done and its input. */
export interface RequestOptions {
  /** Becomes the task's id; a request sent twice with one id makes one task. Default: a new UUIDv7. */
  requestId?: string;
  /** Identifies the task among those of its template. At most 255 bytes. */
  key?: string;
  /** What happens when a task holds the key: attach (default) answers with that task, reject with an error. */
  onDuplicate?: "attach" | "reject";
  /** Who asks, such as admin or cron. */
  requester?: string;
  /** Not before this time. */
  runAt?: Date;
  /** An existing queue that gets the reply. */
  replyTo?: string;
  /** Travels along to every step message. */
  correlationId?: string;
  /** Words to find the task by. */
  tags?: Record<string, string>;
  /** The W3C trace context that the task continues. */
  traceparent?: string;
}

/** Of a task of one step. */
export interface EnqueueOptions extends RequestOptions {
  /** Default: default. */
  namespace?: string;
  /** Default: the namespace's, such as default_queue. */
  queue?: string;
}

/** Where a request goes. */
export interface SendOptions {
  /** A client of pg with an open transaction, not a pool: the request is sent when that commits, and only then. */
  tx?: Queryable;
}

// What submit, enqueue, submitMany and each of its requests take.
const requestNames: Names<RequestOptions> = {
  requestId: true, key: true, onDuplicate: true, requester: true, runAt: true, replyTo: true, correlationId: true, tags: true, traceparent: true,
};
export const sendNames: Names<SendOptions> = { tx: true };
export const submitNames: Names<RequestOptions & SendOptions> = { ...requestNames, ...sendNames };
export const enqueueNames: Names<EnqueueOptions & SendOptions> = { ...submitNames, namespace: true, queue: true };
export const manyNames: Names<RequestOptions & { input: unknown }> = { ...requestNames, input: true };

/** A request on its way, as JSON. */
export interface Envelope {
  requestId: string;
  body: string;
  headers: string | null;
}

/** Makes the message of a request. */
export function envelope(what: { template: string } | { handler: string; namespace?: string; queue?: string }, input: unknown, options: RequestOptions): Envelope {
  const requestId = (options.requestId ?? newRequestId()).toLowerCase(); // as the database writes it
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(requestId)) throw new ConfigError(`making request: requestId is not a UUID`);
  if (options.key !== undefined && (options.key === "" || Buffer.byteLength(options.key) > 255)) {
    throw new InvalidRequest("making request: key has to be 1 to 255 bytes: send a digest", requestId);
  }
  const request = {
    v: 1,
    request_id: requestId,
    ...what,
    input: input === undefined ? {} : input,
    key: options.key,
    on_duplicate: options.onDuplicate,
    requester: options.requester,
    run_at: options.runAt?.toISOString(),
    reply_to: options.replyTo,
    correlation_id: options.correlationId,
    tags: options.tags,
  };
  try {
    return { requestId, body: encode(request), headers: options.traceparent ? JSON.stringify({ traceparent: options.traceparent }) : null };
  } catch (problem) {
    if (!(problem instanceof InvalidBody)) throw problem;
    throw new InvalidRequest(`making request: ${problem.message}`, requestId);
  }
}

/** A UUIDv7: the time in milliseconds, then random bits. */
export function newRequestId(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
