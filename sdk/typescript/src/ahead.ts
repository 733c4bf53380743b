/** Milliseconds that a step claimed ahead may wait for its slot before other workers get it. */
export const maxWait = 250;

/**
 * Estimates how many handlers end while one call to the database is under way. So many steps may be claimed beyond the
 * free slots, or the slots would be empty for as long as a call takes. Handlers much slower than a call make it zero.
 */
export class Ahead {
  estimate = 0;
  private began = 0; // the last call

  /** Notes a call and how many ends it reported. */
  called(ends: number, began: number, took: number): void {
    const since = began - this.began;
    const now = this.began > 0 && since > 0 ? (ends * took) / Math.max(since, took) : 0;
    this.began = began;
    this.estimate = (this.estimate + now) / 2;
  }

  /** At most three for each slot. */
  count(slots: number): number {
    return Math.min(Math.floor(this.estimate), 3 * slots);
  }
}
