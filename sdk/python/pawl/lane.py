"""One queue's way through the worker: its thread talks to the database, one call at a time."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import psycopg

from .apart import MAX_BACKOFF, MIN_BACKOFF, Apart
from .codec import clean
from .database import Database, explain, is_locked, refuses_data, refuses_report, waiting
from .delivery import MAX_ERROR_TEXT, Delivery, Outcome
from .errors import INVALID_RESULT, UNKNOWN_HANDLER, Failed, LeaseLost

if TYPE_CHECKING:
    from .worker import Worker

# Seconds that the first ended handler waits for others to be reported with, while others are at work: a quarter of what the
# last call took, so that a busy database gets fewer and fuller calls.
MIN_LINGER, MAX_LINGER = 0.001, 0.01
MAX_REPORTS = 200  # in one call
MAX_REPORT_BYTES = 4 << 20
LOCK_BATCH, LOCK_ALONE = "5s", "1s"  # how long a call with many reports, and one with a single one, waits for a lock
# When an emptied queue is looked at again, counted from the last wake-up or delivery: an announcement soon after another one
# is suppressed by the database, so what it would have told is found by looking. What was put off for a moment (a claim that
# was busy) is found by the last.
LOOK_AGAIN = (0.005, 0.03, 0.18, 0.855)
UNKNOWN_DELIVERIES = 5  # so often is a step without a handler here left to other workers before it is reported as failed


class Lane:
    """Reports what has ended since the last call, and claims for the slots that are free. Its thread alone fills slots, so a
    slot that it counts as free stays free until the claim is back."""

    def __init__(self, worker: Worker, queue: str, slots: int, database: Database, aside: Database) -> None:
        self.worker, self.queue, self.slots, self.database = worker, queue, slots, database
        self.log: logging.Logger = worker.log
        self.thread = threading.Thread(target=self._converse, name=f"pawl-{queue}", daemon=True)
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.apart = Apart(self, aside)
        # What follows is guarded by lock.
        self.held: dict[int, Delivery] = {}  # claimed, and neither reported nor given back
        self.running = 0  # handlers at work
        self.ended: list[Outcome] = []  # of handlers that returned, not reported yet
        self.linger = MIN_LINGER
        self.linger_from = 0.0  # when the first of them returned, or the last call did
        self.stopping = False  # no more claims
        self.quitting = False  # wind up
        self.crashed = False  # nobody reports any more
        self.woken = False
        self.retry_at, self.backoff = 0.0, 0.0  # no call before this: the last one failed
        # The thread's own.
        self._look_at, self._look_since = 0.0, 0.0  # the next look, and what LOOK_AGAIN counts from; 0: now, and the next look
        self._unknown: set[str] = set()

    def wake(self) -> None:
        """There may be work in the queue."""
        with self.changed:
            self.woken = True
            if self.running < self.slots:
                self.changed.notify()

    def end(self, delivery: Delivery, result: str | None, problem: BaseException | None) -> None:
        """Notes that a handler has returned, and frees its slot. Called by the handlers' threads."""
        outcome = Outcome(delivery, result, problem)
        if outcome.error and not outcome.give_back:
            self._log_failure(outcome, problem)
        with self.changed:
            self.running -= 1
            delivery.ended = True
            if delivery.superseded:
                pass  # the same message came to this worker again: one report for it, the later one
            elif self.crashed:
                pass  # its lease runs out, and somebody else has it then
            elif not outcome.give_back:  # else it stays held, and winding up releases it
                if not self.ended:
                    self.linger_from = time.monotonic()
                self.ended.append(outcome)
            if len(self.ended) in (1, MAX_REPORTS) or self.running == 0 or delivery.superseded:  # of that one, the slot is the news
                self.changed.notify()

    def crash(self) -> None:
        """Lets go of everything, so that no lease is extended for a queue that nobody reports on."""
        with self.changed:
            self.crashed = self.stopping = True
            left = list(self.held.values())
            self.held.clear()
            self.ended.clear()
            self.apart.outcomes.clear()
        for delivery in left:
            delivery.cancel(LeaseLost())
        self.worker.crashed(self.queue)

    def _log_failure(self, outcome: Outcome, problem: BaseException | None) -> None:
        body, error = outcome.delivery.body, outcome.error or {}
        self.log.info(
            "running handler %s of task %s, step %s, attempt %s: %s, type %s, retryable %s%s", body["handler"], body["task_id"],
            body["step"], body["attempt"], outcome.status, error["type"], error["retryable"],
            f": {error['message']}" if self.worker.log_errors else "",
        )  # fmt: skip
        if problem is not None and not isinstance(problem, Failed) and outcome.delivery.cause is None:
            # Where it was raised, without its text: that may hold what is nobody's business.
            self.log.info("handler %s raised %s at:\n%s", body["handler"], error["type"], "".join(traceback.format_tb(problem.__traceback__)))

    def _converse(self) -> None:
        try:
            while True:
                with self.changed:
                    if self.quitting:
                        break
                    outcomes, quantity, wait = self._plan(time.monotonic())
                    if not outcomes and not quantity:
                        self.changed.wait(wait)
                        continue
                self._talk(outcomes, quantity)
            self._wind_up()
        except Exception:
            self.log.exception("queue %s: the worker has a bug, it works on this queue no longer", self.queue)
            self.crash()
        finally:
            self.database.close()

    def _plan(self, now: float) -> tuple[list[Outcome], int, float]:
        """What to say now, or how long to wait. The caller holds changed."""
        if now < self.retry_at:
            return [], 0, self.retry_at - now
        if self.woken:
            self.woken, self._look_at, self._look_since = False, 0.0, 0.0
        free = 0 if self.stopping else self.slots - self.running
        wait = 3600.0
        if self.ended:  # takes the claim along: only without it a claim goes out for itself
            wait = self.linger_from + self.linger - now if self.running and len(self.ended) < MAX_REPORTS else 0.0
        elif free > 0:
            wait = self._look_at - now
        if wait > 0:
            return [], 0, wait
        outcomes = self._take_ended()
        return outcomes, 0 if self.ended else max(free, 0), 0.0  # with a backlog of reports, reporting comes first

    def _take_ended(self) -> list[Outcome]:
        count, size = 0, 0
        for outcome in self.ended[:MAX_REPORTS]:
            size += len(outcome.report)
            if count and size > MAX_REPORT_BYTES:
                break
            count += 1
        taken, self.ended = self.ended[:count], self.ended[count:]
        return taken

    def _talk(self, outcomes: list[Outcome], quantity: int) -> None:
        """One call, and what follows from its answer. What could not be said is said again: every call can be repeated
        blindly, a report that had arrived after all is not accepted twice."""
        began, reported, claimed = time.monotonic(), [], []
        try:
            if not outcomes:
                claimed = self.database.call(waiting(LOCK_BATCH, "pawl.claim_steps(%s, %s, %s)"), (self.queue, quantity, self.worker.name))
            elif not quantity:
                reported = self._report(outcomes, self.database, LOCK_BATCH)
            else:
                answer = self.database.call(waiting(LOCK_BATCH, "pawl.report_and_claim_steps(%s, %s::text::jsonb, %s, %s)"),
                    (self.queue, _reports(outcomes), quantity, self.worker.name))  # fmt: skip
                reported, claimed = answer["reported"], answer["claimed"]
        except (psycopg.Error, OSError) as problem:
            self._returned(began)
            if any(refuses_report(problem, outcome.delivery.claims) for outcome in outcomes):
                self._report_one_by_one(outcomes)
                return
            if outcomes and is_locked(problem):
                self.apart.add(outcomes)
                outcomes = []
            self._failed(outcomes, problem)
            return
        self._returned(began)
        self._recovered()
        self.settle(outcomes, reported)
        if quantity:
            self._found(quantity, len(claimed), time.monotonic())
            self._begin(claimed, began)

    def _returned(self, began: float) -> None:
        """Notes that the call that began then has returned."""
        with self.changed:
            self.linger_from = time.monotonic()
            self.linger = min(max((self.linger_from - began) / 4, MIN_LINGER), MAX_LINGER)

    def _report(self, outcomes: list[Outcome], database: Database, lock: str) -> list[dict[str, Any]]:
        return database.call(waiting(lock, "pawl.report_steps(%s, %s::text::jsonb, %s)"), (self.queue, _reports(outcomes), self.worker.name))

    def _found(self, asked: int, got: int, now: float) -> None:
        if got >= asked:  # there may be more
            self._look_at, self._look_since = 0.0, 0.0
            return
        if got or not self._look_since:
            self._look_since = now
        again = (self._look_since + after for after in LOOK_AGAIN)
        self._look_at = next((at for at in again if at > now), now + self.worker.idle())

    def settle(self, outcomes: list[Outcome], answers: list[dict[str, Any]]) -> None:
        """Lets go of what was reported."""
        late = {answer["msg_id"] for answer in answers if not answer["accepted"]}
        with self.changed:
            for outcome in outcomes:
                delivery = outcome.delivery
                if self.held.get(delivery.msg_id) is delivery:
                    del self.held[delivery.msg_id]
                if delivery.msg_id in late and not delivery.in_transaction:
                    self.log.info("reporting step %s of task %s, attempt %s: too late, the result does not count",
                        delivery.body["step"], delivery.body["task_id"], delivery.body["attempt"])  # fmt: skip

    def _failed(self, outcomes: list[Outcome], problem: BaseException) -> None:
        with self.changed:
            self.ended = outcomes + self.ended
            first = self.backoff == 0
            self.backoff = min(max(2 * self.backoff, MIN_BACKOFF), MAX_BACKOFF)
            self.retry_at = time.monotonic() + self.backoff
        level = logging.WARNING if first else logging.DEBUG
        self.log.log(level, "queue %s: calling the database failed, trying again: %s", self.queue, explain(problem))

    def _recovered(self) -> None:
        if self.backoff:
            self.log.info("queue %s: the database answers again", self.queue)
            with self.changed:
                self.backoff, self.retry_at = 0.0, 0.0

    def _report_one_by_one(self, outcomes: list[Outcome]) -> None:
        """Finds the reports that the database refuses; the others go through."""
        for i, outcome in enumerate(outcomes):
            try:
                answer = self.report_alone(outcome, self.database)
            except (psycopg.Error, OSError) as problem:
                if refuses_report(problem, outcome.delivery.claims) or is_locked(problem):
                    self.apart.add([outcome], problem)
                    continue
                self._failed(outcomes[i:], problem)
                return
            self.settle([outcome], answer)

    def report_alone(self, outcome: Outcome, database: Database) -> list[dict[str, Any]]:
        """Reports one outcome, a failure in its place when the database refuses it for its content."""
        try:
            return self._report([outcome], database, LOCK_ALONE)
        except psycopg.Error as problem:
            if outcome.replaced or not (code := refuses_data(problem)):
                raise
        body, outcome.replaced = outcome.delivery.body, True
        self.log.error("reporting step %s of task %s, handler %s: the database refuses the result (SQLSTATE %s), a failure is reported in its place",
            body["step"], body["task_id"], body["handler"], code)  # fmt: skip
        outcome.fail("failed", {"type": INVALID_RESULT, "retryable": False, "message":
            f"the database refuses the result (SQLSTATE {code}): it is over 1 MiB as the database writes it, or holds a value that jsonb cannot store"})  # fmt: skip
        return self._report([outcome], database, LOCK_ALONE)

    def _begin(self, claimed: list[dict[str, Any]], asked: float) -> None:
        """Starts the handlers of what was claimed. asked is when the claim was sent: the leases began after it."""
        back: list[Delivery] = []
        foreign: list[Delivery] = []
        unstarted: list[Delivery] = []
        for body in claimed:
            delivery = Delivery(body, self.queue, self.worker.name)
            handler = self.worker.handlers.get(body["handler"])
            taken = False  # decided once: a slot that is taken is a handler that starts, and frees it
            with self.changed:
                if before := self.held.get(delivery.msg_id):  # its lease was over, and it came back to us
                    before.superseded = True
                    self.ended = [outcome for outcome in self.ended if outcome.delivery is not before]
                    self.apart.drop(before)
                if self.stopping:
                    back.append(delivery)
                elif handler is None and delivery.read_ct < UNKNOWN_DELIVERIES:
                    foreign.append(delivery)
                elif handler is None:
                    delivery.ended = True
                    self.held[delivery.msg_id] = delivery
                    self.ended.append(self._unknown_handler(delivery))
                else:
                    delivery.lease_from, delivery.beat_at = asked, asked + delivery.lease / 3
                    delivery.deadline = asked + delivery.timeout if delivery.timeout > 0 else 0.0
                    self.held[delivery.msg_id] = delivery
                    self.running += 1
                    taken = True
            if before:
                before.cancel(LeaseLost())
            if taken and handler is not None:
                try:
                    self.worker.start_handler(handler, delivery, self.end)
                except Exception as problem:  # no more threads
                    self.log.warning("queue %s: starting handler %s failed, the step is put back: %s", self.queue, handler.name, explain(problem))
                    with self.changed:
                        self.running -= 1
                        delivery.ended = True
                        del self.held[delivery.msg_id]
                    unstarted.append(delivery)
        self._give_back(back)
        for delivery in foreign:
            self._note_unknown(delivery.body["handler"])
        self._put_back(foreign + unstarted)

    def _unknown_handler(self, delivery: Delivery) -> Outcome:
        outcome = Outcome(delivery, None, None)
        names = ", ".join(sorted(self.worker.handlers))
        text = f"no worker on queue {self.queue!r} took handler {delivery.body['handler']!r} in {delivery.read_ct} deliveries; this one has {names}"
        outcome.fail("failed", {"type": UNKNOWN_HANDLER, "retryable": True, "message": clean(text, MAX_ERROR_TEXT)})
        return outcome

    def _give_back(self, back: list[Delivery]) -> None:
        """Makes steps visible to other workers at once."""
        if not back:
            return
        try:
            self.database.call(waiting(LOCK_ALONE, "pawl.release_steps(%s, %s::text::jsonb, %s)"),
                (self.queue, json.dumps([delivery.fence for delivery in back]), self.worker.name))  # fmt: skip
        except (psycopg.Error, OSError) as problem:
            if len(back) > 1 and (refuses_report(problem, True) or is_locked(problem)):
                for delivery in back:
                    self._give_back([delivery])
                return
            self.log.warning("giving %s steps back failed, they come back when their leases end: %s", len(back), explain(problem))

    def _note_unknown(self, name: str) -> None:
        if name not in self._unknown:
            self._unknown.add(name)
            self.log.warning("queue %s: this worker has no handler %r, the step is left to other workers; it has %s; give handlers of different workers different queues",
                self.queue, name, ", ".join(sorted(self.worker.handlers)))  # fmt: skip

    def _put_back(self, deliveries: list[Delivery]) -> None:
        """Leaves steps that cannot run here now to other workers, each time for longer."""
        for delivery in deliveries:
            try:
                self.database.call(waiting(LOCK_ALONE, "pawl.extend_leases(%s, %s::text::jsonb, %s, %s)"),
                    (self.queue, json.dumps([delivery.fence]), 1000 * delivery.read_ct, self.worker.name))  # fmt: skip
            except (psycopg.Error, OSError) as problem:
                self.log.warning("putting a step back failed, it comes back when its lease ends: %s", explain(problem))

    def _wind_up(self) -> None:
        """Reports what has ended and gives back the rest. The last thing that the thread does."""
        while True:
            with self.changed:
                outcomes = self._take_ended()
                pause = self.retry_at - time.monotonic()
            if not outcomes:
                break
            if pause > 0:
                self.worker.dead.wait(pause)
            if self.worker.dead.is_set():
                self.log.warning("stopping: some results could not be reported, their steps come back when their leases end")
                break
            self._talk(outcomes, 0)
        with self.changed:
            apart = self.apart.deliveries()
            back = [delivery for delivery in self.held.values() if delivery.msg_id not in apart]
            for delivery in back:
                del self.held[delivery.msg_id]
        if back and not self.worker.dead.is_set():
            self.log.info("stopping: giving %s unfinished steps back", len(back))
            self._give_back(back)
        self.apart.finish()
        with self.changed:
            self.held.clear()


def _reports(outcomes: list[Outcome]) -> str:
    return f"[{','.join(outcome.report for outcome in outcomes)}]"
