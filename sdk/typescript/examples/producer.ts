// Asks for greetings and waits for them: node build/examples/producer.js Ada Grace
import { Client } from "pawl";

async function greet(names: string[]): Promise<void> {
  const client = new Client();
  try {
    for (const name of names) {
      const task = await client.enqueue<string>("greet", { name }, { key: `greet-${name}` });
      console.log(await task.wait({ timeoutMs: 60_000 }));
    }
  } finally {
    await client.close();
  }
}

await greet(process.argv.slice(2)).catch((problem: Error) => {
  console.error(`producer: ${problem.message}`);
  process.exitCode = 1;
});
