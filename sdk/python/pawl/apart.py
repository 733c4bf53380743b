"""Reports that go for themselves: the database refuses them, or they wait for a lock that somebody holds."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import psycopg

from .database import Database, explain, refuses_report
from .delivery import Delivery, Outcome

if TYPE_CHECKING:
    from .lane import Lane

MAX_APART = 1000  # refused reports that a queue keeps; of those beyond it the leases end
MIN_BACKOFF, MAX_BACKOFF = 0.05, 5.0  # seconds between tries of a report, or between calls while they fail


class Apart:
    """Tries what was set aside one by one, each with pauses of its own, on a thread and a connection of its own: the queue's
    others go on. The leases go on too, and no result is lost once what was in the way is gone."""

    def __init__(self, lane: Lane, database: Database) -> None:
        self.lane, self.database = lane, database
        self.thread = threading.Thread(target=self._run, name=f"pawl-{lane.queue}-apart", daemon=True)
        self.changed = threading.Condition(lane.lock)
        # What follows is guarded by changed, that is by the lane's lock.
        self.outcomes: list[Outcome] = []
        self.trying: Outcome | None = None

    def add(self, outcomes: list[Outcome], problem: BaseException | None = None) -> None:
        """Sets outcomes aside. problem is of a call that carried this one outcome alone; None: others were with it."""
        lane = self.lane
        with self.changed:
            for outcome in outcomes:
                delivery, body = outcome.delivery, outcome.delivery.body
                if delivery.superseded or lane.crashed:
                    continue
                if problem is not None and refuses_report(problem, delivery.claims) and len(self.outcomes) >= MAX_APART:
                    if lane.held.get(delivery.msg_id) is delivery:
                        del lane.held[delivery.msg_id]
                    lane.log.error("reporting step %s of task %s: too many reports are refused, this one is dropped: %s",
                        body["step"], body["task_id"], explain(problem))  # fmt: skip
                    continue
                if problem is not None:
                    outcome.retry_at = time.monotonic() + min(MIN_BACKOFF * 2 ** min(outcome.tries, 16), MAX_BACKOFF)
                    outcome.tries += 1
                    if outcome.tries == 1:
                        lane.log.error("reporting step %s of task %s, handler %s: it failed, it is tried again while others go on: %s",
                            body["step"], body["task_id"], body["handler"], explain(problem))  # fmt: skip
                self.outcomes.append(outcome)
            self.changed.notify_all()

    def drop(self, delivery: Delivery) -> None:
        """Forgets the report on a delivery that is this worker's no longer. The caller holds the lane's lock."""
        self.outcomes = [outcome for outcome in self.outcomes if outcome.delivery is not delivery]

    def deliveries(self) -> set[int]:
        """The messages of what is set aside. The caller holds the lane's lock."""
        trying = [self.trying] if self.trying is not None else []
        return {outcome.delivery.msg_id for outcome in self.outcomes + trying}

    def finish(self) -> None:
        """Waits until each was tried for itself, or the worker is dead. Where that has failed the lease ends: giving the step
        back would run its handler again."""
        dead = self.lane.worker.dead
        with self.changed:
            self.changed.wait_for(lambda: dead.is_set() or not self._untried())
            if left := len(self.deliveries()):
                self.lane.log.warning("stopping: %s results could not be reported, their steps come back when their leases end", left)
            self.outcomes.clear()

    def _untried(self) -> bool:
        return any(outcome.tries == 0 for outcome in self.outcomes) or self.trying is not None and self.trying.tries == 0

    def _run(self) -> None:
        try:
            while not self.lane.worker.dead.is_set():
                if (outcome := self._next()) is not None:
                    self._try(outcome)
        except Exception:
            self.lane.log.exception("queue %s: the worker has a bug, it works on this queue no longer", self.lane.queue)
            self.lane.crash()
        finally:
            self.database.close()

    def _next(self) -> Outcome | None:
        """The next that is due; None after waiting for it."""
        with self.changed:
            now, due = time.monotonic(), min(self.outcomes, key=lambda outcome: outcome.retry_at, default=None)
            if due is None or due.retry_at > now:
                if not self.lane.worker.dead.is_set():
                    self.changed.wait(None if due is None else due.retry_at - now)
                return None
            self.outcomes.remove(due)
            self.trying = due
            return due

    def _try(self, outcome: Outcome) -> None:
        answer, failed = [], None
        try:
            answer = self.lane.report_alone(outcome, self.database)
        except (psycopg.Error, OSError) as problem:
            failed = problem
        with self.changed:
            self.trying = None
            if failed is not None:
                self.add([outcome], failed)
            else:
                self.lane.settle([outcome], answer)
                self.changed.notify_all()
            idle = not self.outcomes
        if idle:
            self.database.close()  # until it is needed again
