// Graphile Worker: jobs, each of which adds its successor before it returns. Settings are those its performance page
// advises: a local queue of the batch's size and completions collected without delay; a batch of 1 does without both.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { Countdown, batches, handle, serve, until } from './peer.js';

const concurrentJobs = 24;
const quiet = new Logger(() => () => {});

await serve(async (asked) => {
  const pool = new pg.Pool({ connectionString: asked.url, max: 20 });
  pool.on('error', console.error);
  pool.on('connect', (client) => client.on('error', console.error));
  const ended = new Countdown();
  async function step({ left, text }, helpers) {
    await handle(asked);
    if (left > 1) await helpers.addJob('step', { left: left - 1, text });
    else ended.tick();
  }
  const collected = asked.batch > 1 ? { localQueue: { size: asked.batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {};
  const runner = await run({
    pgPool: pool,
    taskList: { step },
    noHandleSignals: true,
    preset: { worker: { concurrentJobs: asked.in_flight || concurrentJobs, logger: quiet, ...collected } },
  });
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  const job = { identifier: 'step', payload: { left: asked.graph.length, text: asked.text } };

  return {
    async run(count) {
      const all = ended.expect(count);
      await batches(count, asked.batch, (size) => utils.addJobs(Array.from({ length: size }, () => job)));
      await all;
      await until(async () => (await pool.query('select not exists (select from graphile_worker._private_jobs) as none')).rows[0].none);
    },
    async close() {
      await runner.stop();
      await utils.release();
      await pool.end();
    },
  };
});
