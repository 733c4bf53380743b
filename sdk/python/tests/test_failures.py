"""Exceptions that are hard to report, and what else must not cost a worker its slots."""

from __future__ import annotations

import unittest
from datetime import timedelta

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


class OutcomeTest(unittest.TestCase):
    def test_a_pause_is_seconds_whatever_it_was_written_as(self) -> None:
        outcome = Outcome(Delivery({"msg_id": 1, "read_ct": 1}, "q", "w"), None, Patient())
        self.assertEqual(outcome.error["retry_after"], 0.02)
        for after in (None, float("nan"), "soon"):
            problem = pawl.Failed("x", type="t")
            problem.after = after
            outcome = Outcome(Delivery({"msg_id": 1, "read_ct": 1}, "q", "w"), None, problem)
            self.assertEqual((outcome.status, "retry_after" in outcome.error), ("failed", False))
