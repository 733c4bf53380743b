/** Options are refused when nobody reads them: a misspelt one would be ignored in silence, where types do not tell. */
import { ConfigError } from "./errors.js";

/** The names of an interface's fields, all of them. */
export type Names<T> = Record<keyof T, true>;

/** Throws ConfigError, with the nearest name that there is. */
export function checkOptions(doing: string, given: object, known: Record<string, true>): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known);
    const near = nearest(name, names);
    throw new ConfigError(`${doing}: there is no option "${name}"${near ? `; did you mean "${near}"?` : `: there are ${names.sort().join(", ")}`}`);
  }
}

/** The name that may have been meant: at most a third of it is different. Case and underscores are no difference. */
function nearest(name: string, names: string[]): string | undefined {
  let [found, least]: [string | undefined, number] = [undefined, Math.max(1, Math.floor(name.length / 3)) + 1];
  for (const candidate of names) {
    const apart = distance(plain(name), plain(candidate));
    if (apart < least && apart < name.length) [found, least] = [candidate, apart];
  }
  return found;
}

function plain(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** Counts the insertions, deletions and replacements that lead from a to b. */
function distance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 0; i < a.length; i++) {
    const row = [i + 1];
    for (let j = 0; j < b.length; j++) row.push(Math.min(last[j]! + (a[i] === b[j] ? 0 : 1), last[j + 1]! + 1, row[j]! + 1));
    last = row;
  }
  return last[b.length]!;
}
