/**
 * Values to JSON: what the database would refuse is refused here, with an error that says what it is. Errors hold no
 * values.
 */
import { InvalidBody } from "./errors.js";

const maxBody = 1 << 20; // bytes of a body
const maxDepth = 64; // nested arrays and objects

/** JSON text of a value; undefined is null. Throws InvalidBody for what Postgres' jsonb or the engine's limits refuse. */
export function encode(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value === undefined ? null : value, faithful);
  } catch (problem) {
    if (problem instanceof InvalidBody) throw problem;
    throw new InvalidBody(describe(problem));
  }
  if (text === undefined) throw new InvalidBody(`a ${typeof value} cannot be written as JSON`);
  const size = Buffer.byteLength(text);
  if (size > maxBody) {
    throw new InvalidBody(`it has ${size} bytes as JSON, over the limit of ${maxBody}: store it elsewhere and pass a reference`);
  }
  // The cheap questions first: only what looks suspicious is walked through.
  if (/\\u(?:0000|d[89a-f])/.test(text) || brackets(text) > maxDepth) check(JSON.parse(text), 1);
  return text;
}

/** JSON.stringify writes NaN as null and a Map as {}, without a word; that would be another result than the handler's. */
function faithful(this: any, key: string, value: unknown): unknown {
  const number = value instanceof Number ? value.valueOf() : value;
  if (typeof number === "number" && !Number.isFinite(number)) throw new InvalidBody("it has a number that JSON does not have (NaN, Infinity)");
  if (value instanceof Map) throw new InvalidBody("a Map cannot be written as JSON: write it with Object.fromEntries");
  if (value instanceof Set) throw new InvalidBody("a Set cannot be written as JSON: write it as an array");
  if (value instanceof Promise) throw new InvalidBody("a Promise cannot be written as JSON: await it");
  if (value instanceof Error) throw new InvalidBody("an Error cannot be written as JSON: throw it, or write its message");
  if (value === null) {
    const original: unknown = this[key]; // before its toJSON
    if (original instanceof Date) throw new InvalidBody("it has a Date that is none (Invalid Date)");
  } else if (typeof value === "object") {
    if (Symbol.asyncIterator in value) throw new InvalidBody("a generator or stream cannot be written as JSON: collect what it yields into an array");
    if (Symbol.iterator in value && !Array.isArray(value) && !(value instanceof String) && Object.keys(value).length === 0 && !ArrayBuffer.isView(value)) {
      throw new InvalidBody(`a ${value.constructor?.name || "generator"} cannot be written as JSON: write it as an array, or with Object.fromEntries`);
    }
  }
  return value;
}

function describe(problem: unknown): string {
  if (problem instanceof RangeError) return `it is nested more than ${maxDepth} deep`;
  const text = problem instanceof Error ? problem.message : "";
  if (text.includes("BigInt")) return "a bigint cannot be written as JSON: write it as a number or a string";
  if (text.includes("circular")) return "it contains itself";
  return "it cannot be written as JSON";
}

function brackets(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length && count <= maxDepth; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x5b || c === 0x7b) count++;
  }
  return count;
}

function check(value: unknown, depth: number): void {
  if (typeof value === "string") {
    if (value.includes("\0")) throw new InvalidBody("a text has a NUL character (\\u0000), which jsonb cannot store");
    if (!value.isWellFormed()) throw new InvalidBody("a text has half of a surrogate pair, which jsonb cannot store");
  } else if (typeof value === "object" && value !== null) {
    if (depth > maxDepth) throw new InvalidBody(`it is nested more than ${maxDepth} deep`);
    if (Array.isArray(value)) {
      for (const item of value) check(item, depth + 1);
    } else {
      for (const [key, item] of Object.entries(value)) {
        check(key, depth);
        check(item, depth + 1);
      }
    }
  }
}

/** A text that the database stores, of at most so many bytes. */
export function clean(text: string, limit: number): string {
  text = text.replaceAll("\0", "\ufffd").toWellFormed();
  if (Buffer.byteLength(text) <= limit) return text;
  let cut = Buffer.from(text).subarray(0, limit).toString();
  while (cut.endsWith("\ufffd")) cut = cut.slice(0, -1); // of a character that was cut in two
  return cut + "…";
}
