// DBOS Transact. Mode "steps": a workflow's steps run in its process, each checkpointed. Mode "queue": each step is a
// workflow of its own on a queue, which is what steps in other processes or languages need; polling is every 20 ms (its
// default is a second).
import { DBOS } from '@dbos-inc/dbos-sdk';
import { Countdown, levels, serve } from './peer.js';

const polling = 20;
const atOnce = 64; // workflows

await serve(async (asked) => {
  const step = async () => ({ ok: true });
  const queued = DBOS.registerWorkflow(async (_input) => step(), { name: 'step' });
  const begin = {
    steps: (node) => DBOS.runStep(step, { name: node.name }),
    queue: async (node, input) => {
      const handle = await DBOS.startWorkflow(queued, { queueName: 'steps' })(input);
      return handle.getResult({ pollingIntervalMs: polling });
    },
  }[asked.mode];
  const rows = levels(asked.graph);
  const flow = DBOS.registerWorkflow(async (text) => {
    const results = {};
    for (const row of rows) {
      const ended = await Promise.all(row.map((node) =>
        begin(node, { text, needs: node.needs.map((name) => results[name]) })));
      row.forEach((node, i) => (results[node.name] = ended[i]));
    }
    return { ok: true };
  }, { name: 'flow' });
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: asked.url, systemDatabasePoolSize: 20, logLevel: 'error' });
  await DBOS.launch();
  if (asked.mode === 'queue') await DBOS.registerQueue('steps', { workerConcurrency: 2 * atOnce, minPollingIntervalMs: polling });

  async function one() {
    const handle = await DBOS.startWorkflow(flow)(asked.text);
    await handle.getResult();
  }

  return {
    async run(count) {
      const ended = new Countdown();
      const all = ended.expect(count);
      let left = count;
      const submitter = async () => {
        while (left-- > 0) {
          await one();
          ended.tick();
        }
      };
      await Promise.all(Array.from({ length: Math.min(atOnce, count) }, submitter));
      await all;
    },
    close: () => DBOS.shutdown(),
  };
});
