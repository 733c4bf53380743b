/** Keeps fields that lead to the database's password from being printed, or written as JSON. */
export function hide(of: object, ...names: string[]): void {
  for (const name of names) Object.defineProperty(of, name, { enumerable: false, configurable: true, writable: true });
}
