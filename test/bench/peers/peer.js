// What the peers share: the line protocol with the benchmark, which starts each as a process of its own.
//
//   argument  {"url", "mode", "graph": [{"name", "needs"}], "text", "batch", "in_flight"} as JSON
//   stdin     "run N": submit N tasks and wait until all are complete and durable; "close": stop and end
//   stdout    "bench: ready", then "bench: done" or "bench: failed WHY" for each line
//
// Whatever else is written goes to stderr.
import readline from 'node:readline';

const say = (text) => process.stdout.write(`bench: ${text.replaceAll('\n', ' ')}\n`);
console.log = console.info = console.debug = console.error;

/** serve opens a peer with what was asked, and does what stdin says until it ends. */
export async function serve(open) {
  const asked = JSON.parse(process.argv[2]);
  let peer;
  try {
    peer = await open(asked);
    say('ready');
  } catch (error) {
    say(`failed ${error.stack}`);
    process.exit(1);
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, count] = line.split(' ');
    try {
      if (word === 'close') break;
      await peer.run(Number(count));
      say('done');
    } catch (error) {
      say(`failed ${error.stack}`);
    }
  }
  await peer.close();
  say('done');
  process.exit(0); // pools may keep it alive
}

/** Countdown resolves when as many things have happened as were expected. */
export class Countdown {
  #left = 0;
  #resolve;

  expect(count) {
    this.#left = count;
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  tick() {
    if (--this.#left === 0) this.#resolve();
  }
}

/** batches calls submit with the sizes of batches until count is reached. */
export async function batches(count, size, submit) {
  for (let sent = 0; sent < count; sent += size) await submit(Math.min(size, count - sent));
}

/** levels of a graph: a node stands after all that it needs. */
export function levels(graph) {
  const level = new Map();
  for (const node of graph) level.set(node.name, 1 + Math.max(-1, ...node.needs.map((name) => level.get(name))));
  const found = [];
  for (const node of graph) (found[level.get(node.name)] ??= []).push(node);
  return found;
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** handle is the handler's body: nothing, or a moment when handlers shall return one by one. */
export const handle = (asked) => (asked.in_flight ? pause(Math.random() * 2) : undefined);

/** until asks a question every 5 ms until the answer is yes. */
export async function until(question) {
  while (!(await question())) await pause(5);
}
