/** Takes what happens: never an input, a result or the text of a handler's error. */
export interface Log {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

function write(level: string): (message: string, fields?: object) => void {
  return (message, fields) => {
    const rest = Object.entries(fields ?? {}).map(([key, value]) => ` ${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    process.stderr.write(`${new Date().toISOString()} ${level} ${message}${rest.join("")}\n`);
  };
}

/** Lines on standard error; nothing at level debug. */
export const standardLog: Log = { debug: () => {}, info: write("INFO"), warn: write("WARN"), error: write("ERROR") };

/** Takes everything and says nothing. */
export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The text of an error, without its stack. */
export function textOf(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
