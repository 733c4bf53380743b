// Asks for greetings and waits for them: node build/examples/producer.js Ada Grace
import { Client } from "pawl";

const client = new Client();
try {
  for (const name of process.argv.slice(2)) {
    const task = await client.enqueue<string>("greet", { name }, { key: `greet-${name}` });
    console.log(await task.wait({ timeoutMs: 60_000 }));
  }
} catch (problem) {
  console.error(`producer: ${(problem as Error).message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
