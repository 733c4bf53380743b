"""Heartbeats: leases are extended, timeouts noticed, and handlers told when their work is no longer wanted."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from .database import Database, explain, is_locked, waiting
from .delivery import Delivery
from .errors import Cancelled, LeaseLost, TimedOut

if TYPE_CHECKING:
    from .lane import Lane

LOOK_EVERY = 0.1  # seconds between looks for leases to extend
LOCK_LEASES = "50ms"  # how long extending waits for a message that somebody has locked: the leases that are with it are not to end for that


class Beat:
    """A thread and a connection of its own, so that neither handlers nor reports hold up a lease. A second thread looks at
    the clock alone, so that a database which does not answer keeps nobody from hearing that time is over."""

    def __init__(self, lanes: list[Lane], database: Database) -> None:
        self._lanes, self._database = lanes, database
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pawl-beat", daemon=True)
        self._clock = threading.Thread(target=self._watch, name="pawl-clock", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._clock.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)
        self._clock.join(timeout=5)
        self._database.close()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_EVERY):
            for lane in self._lanes:
                for length, due in self._due(lane, time.monotonic()).items():
                    self._extend(lane, due, length)

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_EVERY):
            for lane in self._lanes:
                self._expire(lane, time.monotonic())

    @staticmethod
    def _expire(lane: Lane, now: float) -> None:
        """Tells handlers whose timeout or lease is over, whatever the database says."""
        late, lost = [], []
        with lane.changed:
            for delivery in lane.held.values():
                if delivery.deadline and now >= delivery.deadline:
                    late.append(delivery)
                # Of one that has ended, or whose transaction has the message, the report tells.
                if delivery.beat_at and now >= delivery.lease_from + delivery.lease and not (delivery.ended or delivery.in_transaction):
                    delivery.beat_at = 0.0
                    lost.append(delivery)
        for delivery in late:
            delivery.cancel(TimedOut())
        for delivery in lost:
            _lose(lane, delivery)

    @staticmethod
    def _due(lane: Lane, now: float) -> dict[float, list[Delivery]]:
        """What is to be extended, by length of lease."""
        due: dict[float, list[Delivery]] = {}
        with lane.changed:
            for delivery in lane.held.values():
                if delivery.beat_at and now >= delivery.beat_at:
                    due.setdefault(delivery.lease, []).append(delivery)
        return due

    def _extend(self, lane: Lane, due: list[Delivery], length: float) -> None:
        asked, failed, status = time.monotonic(), False, {}
        try:
            answer = self._database.call(waiting(LOCK_LEASES, "pawl.extend_leases(%s, %s::text::jsonb, %s, %s)"),
                (lane.queue, json.dumps([delivery.fence for delivery in due]), round(1000 * length), lane.worker.name),
                max(length / 3, 1.0))  # fmt: skip
            status = {one["msg_id"]: one["status"] for one in answer}
        except (psycopg.Error, OSError) as problem:
            if len(due) > 1 and is_locked(problem):
                # One of them, by a transaction that completes its step or by what such a one left behind.
                for delivery in due:
                    self._extend(lane, [delivery], length)
                return
            failed = True
            if not self._stopped.is_set():
                # Its own transaction or report has the message locked, for as long as that lasts.
                expected = is_locked(problem) and (due[0].in_transaction or due[0].ended)
                lane.log.log(logging.DEBUG if expected else logging.WARNING, "queue %s: extending %s leases failed, trying again: %s", lane.queue, len(due), explain(problem))
        now, cancelled, lost = time.monotonic(), [], []
        with lane.changed:
            for delivery in due:
                if lane.held.get(delivery.msg_id) is not delivery or not delivery.beat_at:
                    continue  # reported meanwhile, or its lease was over
                word = status.get(delivery.msg_id)
                if failed and now - delivery.lease_from < length:
                    delivery.beat_at = now + min(length / 10, 1.0)
                elif word == "extended":
                    delivery.lease_from, delivery.beat_at = asked, asked + length / 3
                elif delivery.ended or delivery.in_transaction:
                    # A report or a transaction has the message locked, or gone: it tells. An ended one keeps trying.
                    delivery.beat_at = now + min(length / 10, 1.0)
                elif word == "cancelled":
                    # The lease goes on until the handler has returned: its report takes the message away.
                    delivery.lease_from, delivery.beat_at = asked, asked + length / 3
                    cancelled.append(delivery)
                else:
                    delivery.beat_at = 0.0
                    lost.append(delivery)
        for delivery in cancelled:
            delivery.cancel(Cancelled())
        for delivery in lost:
            _lose(lane, delivery)


def _lose(lane: Lane, delivery: Delivery) -> None:
    lane.log.warning("extending the lease of step %s of task %s, attempt %s: it is lost, the handler is told to stop",
        delivery.body["step"], delivery.body["task_id"], delivery.body["attempt"])  # fmt: skip
    delivery.cancel(LeaseLost())
