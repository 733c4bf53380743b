// pgflow's SQL core, driven by its own client as its worker drives it: read messages, start their tasks, complete each.
// Messages are read with short reads instead of read_with_poll, whose long transaction keeps the lock of a message that
// another reader took, so that its task cannot start before the poll ends.
//
// Its migrations are written for Supabase. Stubbed: realtime.send does nothing (the real one inserts a row per event, so
// pgflow would be slower), and `create extension pgmq` is left out, for PGMQ is there already.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PgflowSqlClient } from '@pgflow/core';
import postgres from 'postgres';
import { Countdown, batches, pause, serve } from './peer.js';

const readers = 4;
const poll = 5; // ms, when a read brought nothing
const flow = 'bench';

const stubs = `create schema realtime;
  create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
    language sql as 'select';`;

async function install(sql) {
  await sql.unsafe(stubs).simple();
  const folder = join(dirname(fileURLToPath(import.meta.resolve('@pgflow/core'))), 'supabase', 'migrations');
  for (const name of readdirSync(folder).filter((n) => n.endsWith('.sql')).sort()) {
    await sql.unsafe(readFileSync(join(folder, name), 'utf8').replaceAll(/^CREATE EXTENSION.*$/gm, '')).simple();
  }
}

await serve(async (asked) => {
  const sql = postgres(asked.url, { max: 4 * readers, onnotice() {} });
  await install(sql);
  await sql`select pgflow.create_flow(${flow}, timeout => 60)`;
  for (const node of asked.graph) await sql`select pgflow.add_step(${flow}, ${node.name}, ${node.needs}::text[])`;
  const [{ worker }] = await sql`insert into pgflow.workers (worker_id, queue_name, function_name)
    values (gen_random_uuid(), ${flow}, 'bench') returning worker_id as worker`;
  const client = new PgflowSqlClient(sql);
  const completed = new Countdown();
  let stopped = false;

  async function work() {
    while (!stopped) {
      const messages = await sql`select msg_id from pgmq.read(${flow}, 60, ${asked.batch}::int)`;
      if (messages.length === 0) {
        await pause(poll);
        continue;
      }
      const tasks = await client.startTasks(flow, messages.map((m) => m.msg_id), worker);
      await Promise.all(tasks.map(async (task) => {
        await client.completeTask(task, { ok: true });
        completed.tick();
      }));
    }
  }
  const loops = Array.from({ length: readers }, work);

  return {
    async run(count) {
      const all = completed.expect(count * asked.graph.length);
      await batches(count, asked.batch, (size) =>
        Promise.all(Array.from({ length: size }, () => client.startFlow(flow, { text: asked.text }))));
      await all;
      const [{ open }] = await sql`select count(*)::int as open from pgflow.runs where status <> 'completed'`;
      if (open > 0) throw new Error(`${open} runs are not completed`);
    },
    async close() {
      stopped = true;
      await Promise.all(loops);
      await sql.end();
    },
  };
});
