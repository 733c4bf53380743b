"""Exceptions that are hard to report, and what else must not cost a worker its slots."""

from __future__ import annotations

import logging
import threading
import unittest
from datetime import timedelta
from unittest import mock

import pawl
from pawl.delivery import Delivery, Outcome

from .support import DEADLINE, Case


class Mute(pawl.Permanent):
    def __init__(self) -> None:
        pass


class Patient(pawl.Failed):
    after = timedelta(milliseconds=20)  # type: ignore[assignment]


class Unspeakable(pawl.Permanent):
    @property
    def type(self) -> str:
        raise RuntimeError("no type")

    @type.setter
    def type(self, value: str) -> None:
        pass


def circular() -> Exception:
    first, second = pawl.Failed("round"), pawl.Failed("and round")
    first.__cause__, second.__cause__ = second, first
    return first


class FailureTest(Case):
    def test_a_log_has_the_texts_of_errors_when_it_is_told_to(self) -> None:
        for log_errors in (False, True):
            with self.subTest(log_errors=log_errors):
                log = logging.getLogger(f"pawl.test.errors.{log_errors}")
                worker = self.worker(log=log, log_errors=log_errors)

                @worker.handler("raises")
                def raises(order: str) -> None:
                    raise pawl.Permanent(f"no stock for {order}")

                with self.assertLogs(log) as said:
                    self.start(worker)
                    with self.assertRaises(pawl.TaskFailed):
                        self.client.wait(self.enqueue("raises", "S-1"), DEADLINE / 3)
                    worker.stop()
                failures = [line for line in said.output if "type error, retryable False" in line]
                self.assertEqual(len(failures), 1, said.output)
                self.assertEqual(failures[0].endswith("retryable False: no stock for S-1"), log_errors, failures)
                self.assertEqual(any("no stock" in line for line in said.output), log_errors)

    def test_exceptions_that_say_little_are_reported_and_free_their_slot(self) -> None:
        worker = self.worker(concurrency=1)

        @worker.handler("raises")
        def raises(which: str) -> None:
            if which == "self":
                problem = pawl.Failed("of itself")
                raise problem from problem
            raise {"mute": Mute, "patient": Patient, "circular": circular, "unspeakable": Unspeakable}[which]()

        @worker.handler("echo")
        def echo(value: int) -> int:
            return value

        self.start(worker)
        for which, error_type, attempts in (
            ("mute", "Mute", 1), ("patient", "Patient", 2), ("self", "error", 2), ("circular", "error", 2), ("unspeakable", "error", 1),
        ):  # fmt: skip
            with self.subTest(which):
                reference = self.template({"name": "run", "handler": "raises", "retry": {"base_ms": 1, "max_attempts": 2}})
                sent = self.client.submit(reference, which)
                with self.assertRaises(pawl.TaskFailed):
                    self.client.wait(sent, DEADLINE / 3)
                step = self.step_of(sent)
                self.assertEqual((step["attempt"], step["error"]["type"]), (attempts, error_type))
        self.assertEqual(self.run_one("echo", 1).result, 1)
        self.until(lambda: not worker._lanes[0].held, "nothing is held")

    def test_numbers_of_any_length_are_read(self) -> None:
        worker = self.worker()
        worker.handler("digits")(lambda value, step: [value == 10**5000, step.input == 10**5000])
        sent = self.enqueue("digits", 1)
        self.until(lambda: self.step_of(sent), "there is a step")
        self.db.execute(f"update pgmq.q_{self.queue} set message = jsonb_set(message, '{{input}}', '1e5000')")
        self.start(worker)
        self.assertEqual(self.client.wait(sent, DEADLINE / 3).result, [True, True])

    def test_a_step_whose_handler_cannot_be_started_comes_again(self) -> None:
        worker, start, refused = self.worker(), threading.Thread.start, []

        def exhausted(thread: threading.Thread) -> None:
            if thread.name.startswith("pawl-handler") and not refused:
                refused.append(thread)
                raise RuntimeError("can't start new thread")
            start(thread)

        worker.handler("delivery")(lambda step: step.delivery)
        self.start(worker)
        with mock.patch.object(threading.Thread, "start", exhausted):
            self.assertEqual(self.run_one_soon("delivery"), 2)
        lane = worker._lanes[0]
        self.until(lambda: not lane.held and not lane.running, "nothing is held")

    def run_one_soon(self, handler: str) -> object:
        return self.client.wait(self.enqueue(handler), DEADLINE / 3).result

    def test_a_crash_holds_no_step_and_is_told(self) -> None:
        worker, running, causes = self.worker(), threading.Event(), []

        @worker.handler("waits")
        def waits(step: pawl.Step) -> None:
            running.set()
            step.cancelled.wait(DEADLINE / 3)
            causes.append(step.cause)

        raised: list[BaseException] = []

        def run() -> None:
            try:
                worker.run()
            except pawl.PawlError as problem:
                raised.append(problem)

        running_worker = threading.Thread(target=run)
        running_worker.start()
        self.addCleanup(running_worker.join, DEADLINE)
        self.addCleanup(worker.stop, 0)
        self.enqueue("waits")
        self.assertTrue(running.wait(DEADLINE))
        lane = worker._lanes[0]
        with mock.patch.object(lane, "_plan", side_effect=AssertionError("a bug")):
            with lane.changed:
                lane.changed.notify()
            self.until(lambda: not lane.thread.is_alive(), "the lane has ended")
        self.assertFalse(lane.held)
        running_worker.join(DEADLINE)
        self.assertIsInstance(causes[0], pawl.LeaseLost)
        self.assertIn(self.queue, str(raised[0]))


class OutcomeTest(unittest.TestCase):
    def test_a_pause_is_seconds_whatever_it_was_written_as(self) -> None:
        outcome = Outcome(Delivery({"msg_id": 1, "read_ct": 1}, "q", "w"), None, Patient())
        self.assertEqual(outcome.error["retry_after"], 0.02)
        for after in (None, float("nan"), "soon"):
            problem = pawl.Failed("x", type="t")
            problem.after = after
            outcome = Outcome(Delivery({"msg_id": 1, "read_ct": 1}, "q", "w"), None, problem)
            self.assertEqual((outcome.status, "retry_after" in outcome.error), ("failed", False))
