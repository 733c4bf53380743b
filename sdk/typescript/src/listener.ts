import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";

import pg from "pg";

import { rows } from "./database.js";
import { textOf, type Log } from "./log.js";
import { Alarm, within } from "./look.js";

const probeEvery = 10_000;
const probeTimeout = 5_000;
const retryMin = 100;
const retryMax = 10_000;
// Milliseconds that a connection has to end in good order.
const goodbye = 2_000;

/** What a listener needs. */
export interface ListenerConfig {
  connection: pg.ClientConfig;
  /** Sends the probes. */
  probe: pg.Pool;
  log: Log;
}

/**
 * Wakes subscribers when Postgres notifies on their channels, over a connection of its own. A wake-up is a hint and
 * carries nothing. A connection through a transaction pooler takes LISTEN without an error and never hears anything, so
 * the listener sends itself a notification now and then; while none arrives `proven` is false.
 */
export class Listener {
  proven = false;
  private readonly channel = "pawl_probe_" + randomBytes(6).toString("hex");
  private readonly wakes = new Map<string, (() => void)[]>();
  private readonly alarm = new Alarm();
  private stopped = false;
  private ended: Promise<void> = Promise.resolve();
  /** Ends the connection that is open, without a word. */
  private cut: () => void = () => {};

  constructor(private readonly config: ListenerConfig) {}

  /** Calls wake at each notification on the channel and after each reconnection. Before start. */
  subscribe(channel: string, wake: () => void): void {
    this.wakes.set(channel, [...(this.wakes.get(channel) ?? []), wake]);
  }

  start(): void {
    this.ended = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.alarm.ring();
    if (!(await within(this.ended, goodbye))) this.cut(); // in the middle of connecting, or of a LISTEN
  }

  private async run(): Promise<void> {
    let wait = retryMin;
    let deaf = false;
    while (!this.stopped) {
      let heard = false;
      try {
        heard = await this.serve();
      } catch (problem) {
        this.config.log.debug("listening: the connection ended", { error: textOf(problem) });
      }
      if (this.stopped) break;
      if (this.proven) {
        this.config.log.info("listening: the connection was lost, queues are polled meanwhile");
      } else if (!heard && !deaf) {
        deaf = true;
        this.config.log.warn("listening: notifications do not arrive, queues are polled; behind a transaction pooler say listen: false");
      }
      this.proven = false;
      wait = heard ? retryMin : Math.min(2 * wait, retryMax);
      await this.alarm.wait(wait);
    }
  }

  /** Listens until the connection ends, or is deaf. Returns whether it heard its probe. */
  private async serve(): Promise<boolean> {
    const client = new pg.Client(this.config.connection);
    const state = { open: true, heard: false, sentAt: 0 };
    const lost = () => {
      state.open = false;
      this.alarm.ring();
    };
    this.cut = () => (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", (note) => {
      if (note.channel !== this.channel) {
        this.wakes.get(note.channel)?.forEach((wake) => wake());
        return;
      }
      state.heard = this.proven = true;
      state.sentAt = 0;
      this.alarm.ring();
    });
    try {
      await client.connect();
      for (const channel of [this.channel, ...this.wakes.keys()]) await client.query({ text: `listen ${pg.escapeIdentifier(channel)}`, query_timeout: probeTimeout } as pg.QueryConfig);
      this.wakes.forEach((several) => several.forEach((wake) => wake())); // what was sent while nobody listened is found by looking
      let next = 0;
      while (state.open && !this.stopped) {
        const now = performance.now();
        if (state.sentAt && now > state.sentAt + probeTimeout) break;
        if (!state.sentAt && now >= next) {
          next = now + probeEvery;
          state.sentAt = now;
          await rows(this.config.probe, "select pg_notify($1, '')", [this.channel], probeTimeout).catch(() => (state.sentAt = 0));
        }
        await this.alarm.wait((state.sentAt ? state.sentAt + probeTimeout : next) - performance.now());
      }
      return state.heard;
    } finally {
      client.removeListener("error", lost);
      client.on("error", () => {});
      void client.end().catch(() => {});
      // A dead connection never answers the goodbye.
      setTimeout(this.cut, goodbye).unref();
    }
  }
}
