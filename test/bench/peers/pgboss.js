// pg-boss: jobs, each of which sends its successor before it is completed. Driven by fetch and complete in four loops, as
// its documentation allows: work() sleeps half a second at least between polls, so that a chain would take two seconds.
import PgBoss from 'pg-boss';
import { Countdown, batches, handle, pause, serve } from './peer.js';

const loops = 4;
const queue = 'steps';
const poll = 5; // ms, when a fetch brought nothing

await serve(async (asked) => {
  const boss = new PgBoss({ connectionString: asked.url, max: 20 });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  await boss.createQueue(queue);
  const ended = new Countdown();
  let stopped = false;

  async function work() {
    while (!stopped) {
      const jobs = await boss.fetch(queue, { batchSize: asked.batch });
      if (jobs.length === 0) {
        await pause(poll);
        continue;
      }
      await Promise.all(jobs.map(() => handle(asked)));
      const next = jobs.filter((job) => job.data.left > 1)
        .map((job) => ({ name: queue, data: { left: job.data.left - 1, text: job.data.text } }));
      if (next.length > 0) await boss.insert(next);
      await boss.complete(queue, jobs.map((job) => job.id));
      jobs.filter((job) => job.data.left === 1).forEach(() => ended.tick());
    }
  }
  const workers = Array.from({ length: loops }, work);
  const job = { name: queue, data: { left: asked.graph.length, text: asked.text } };

  return {
    async run(count) {
      const all = ended.expect(count);
      await batches(count, asked.batch, (size) => boss.insert(Array.from({ length: size }, () => job)));
      await all;
    },
    async close() {
      stopped = true;
      await Promise.all(workers);
      await boss.stop({ graceful: false });
    },
  };
});
