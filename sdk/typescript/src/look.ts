/**
 * When an emptied queue is looked at again, in milliseconds since the last wake-up or delivery: an announcement soon after
 * another one is suppressed by the database, so what it would have told is found by looking. What was put off for a moment
 * (a claim that was busy) is found by the last.
 */
export const again: readonly number[] = [5, 30, 180, 855];

/** Decides when a queue is looked at next. Times are those of performance.now(). */
export class Look {
  /** The next look; 0 is now. */
  at = 0;
  private since = 0; // the first look after the last wake-up, or the last that brought something

  constructor(private readonly idle: () => number) {}

  /** Makes the next look due. */
  woken(): void {
    this.at = this.since = 0;
  }

  /** Notes what a look brought. */
  found(asked: number, got: number, now: number): void {
    if (got >= asked) {
      this.woken(); // there may be more
      return;
    }
    if (got > 0 || this.since === 0) this.since = now;
    const next = again.find((after) => this.since + after > now);
    this.at = next === undefined ? now + this.idle() : this.since + next;
  }
}

/** A pause that somebody can end early. A ring while nobody waits ends the next pause at once. */
export class Alarm {
  private rung = false;
  private wake: (() => void) | undefined;

  ring(): void {
    this.rung = true;
    this.wake?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.rung && ms > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(Math.ceil(ms), 60_000));
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = undefined;
    }
    this.rung = false;
  }
}

/** A pause. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits for a promise, but not longer than so many milliseconds. Returns whether it has ended. */
export async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
