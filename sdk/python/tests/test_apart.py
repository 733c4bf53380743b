"""Reports that the user's tables refuse, and messages that somebody has locked: they hold up no others."""

from __future__ import annotations

import threading
import unittest
from typing import Any
from unittest import mock

import psycopg

import pawl
from pawl import apart
from pawl.database import is_locked, refuses_data, refuses_report
from .support import DEADLINE, Case


class RefusedTest(Case):
    def payment(self, code: str) -> str:
        """A template whose step claims a row of the user's, which a trigger lets out of the claim's state for nothing but
        an SQLSTATE, until drop_trigger."""
        self.table = "invoices_" + self.queue
        self.db.execute(f"create table {self.table} (number text primary key, status text not null, version int not null default 1)")
        self.db.execute(f"insert into {self.table} values ('A-1', 'sent'), ('A-2', 'sent'), ('A-3', 'sent')")
        self.db.execute(f"create function refuse_{self.queue}() returns trigger language plpgsql as $$ begin raise exception 'not this one' using errcode = '{code}'; end $$")
        self.db.execute(f"create trigger refuse before update on {self.table} for each row when (old.status = 'paying') execute function refuse_{self.queue}()")
        self.db.execute("select pawl.register_entity(%s, jsonb_build_object('table', %s::text, 'key', 'number', 'status', 'status', 'version', 'version', "
            "'module', %s::text, 'states', array['sent', 'paying', 'paid'], 'claim_limit', '5 minutes'), 'ann', 'payments are claimed')", (self.queue, self.table, self.queue))  # fmt: skip
        self.db.execute("select pawl.beat_janitor(%s)", (self.queue,))
        claim = {"entity": self.queue, "id": "${input.invoice}", "from": "sent", "into": "paying", "revert_to": "sent", "on_success": "paid", "on_busy": "fail"}
        return self.template({"name": "run", "handler": "pay", "claim": {"default": claim}})

    def drop_trigger(self) -> None:
        self.db.execute(f"drop trigger refuse on {self.table}")

    def payer(self) -> tuple[pawl.Worker, threading.Event]:
        worker, paid = self.worker(), threading.Event()

        @worker.handler("pay")
        def pay(step: pawl.Step) -> str:
            paid.set()
            return "paid"

        worker.handler("other")(lambda value: value)
        return worker, paid

    def test_a_report_that_the_users_table_refuses_holds_up_no_other(self) -> None:
        # 42501 and its like Pawl's own functions raise too, then for all; 22012 could be the result's fault: a failure is
        # reported in its place, and refused as well.
        codes = ("23514", "23505", "P0001", "ABCDE", "42501", "42P01", "42883", "22012")
        for code, after in ((code, "failed" if code == "22012" else "completed") for code in codes):
            with self.subTest(code):
                self.setUp()
                reference, (worker, paid) = self.payment(code), self.payer()
                others = [self.enqueue("other", n) for n in range(3)]
                refused = self.client.submit(reference, {"invoice": "A-1"})
                self.start(worker)
                self.assertTrue(paid.wait(DEADLINE))
                lane = worker._lanes[0]
                self.until(lambda: any(outcome.tries for outcome in lane.apart.outcomes), "it was refused alone")
                for n, other in enumerate([*others, self.enqueue("other", 3)]):
                    self.assertEqual(self.client.wait(other, DEADLINE / 2).result, n)
                self.assertEqual(self.step_of(refused)["state"], "in_progress")
                self.drop_trigger()
                if after == "completed":
                    self.assertEqual(self.client.wait(refused, DEADLINE / 2).result, "paid")
                else:
                    with self.assertRaises(pawl.TaskFailed):
                        self.client.wait(refused, DEADLINE / 2)
                    self.assertEqual(self.step_of(refused)["error"]["type"], "invalid_result")
                self.assertEqual(self.step_of(refused)["deliveries"], 1)
                self.assertEqual(self.value("select count(*) from pawl.entity_claims where entity = %s", self.queue), 0)
                self.until(lambda: not lane.held, "nothing is held")

    def test_stopping_tries_what_is_apart_and_gives_none_of_it_back(self) -> None:
        reference, (worker, paid) = self.payment("23514"), self.payer()
        self.start(worker)
        refused = self.client.submit(reference, {"invoice": "A-1"})
        self.assertTrue(paid.wait(DEADLINE))
        lane = worker._lanes[0]
        self.until(lambda: any(outcome.tries for outcome in lane.apart.outcomes), "it was refused alone")
        worker.stop(0)
        self.assertFalse(lane.apart.thread.is_alive() or lane.held)
        # Given back, its handler would run again, although it has ended.
        self.assertEqual(self.value(f"select count(*) from pgmq.q_{self.queue} where vt > clock_timestamp() and read_ct = 1"), 1)
        self.assertEqual(self.step_of(refused)["state"], "in_progress")

    def test_reports_that_nobody_may_make_are_made_later(self) -> None:
        reference, release, worker, running = self.payment("00000"), threading.Event(), self.worker(), []
        self.drop_trigger()
        self.addCleanup(release.set)
        for name in ("pay", "other"):

            @worker.handler(name)
            def ends(step: pawl.Step) -> str:
                running.append(step)
                release.wait(DEADLINE)
                return "done"

        sent = [self.client.submit(reference, {"invoice": "A-1"}), self.enqueue("other")]
        self.start(worker)
        self.until(lambda: len(running) == 2, "both run")
        self.db.execute("alter function pawl.read_reports(jsonb) rename to read_reports_away")
        try:
            release.set()
            sent.append(self.enqueue("other"))
            self.until(lambda: worker._lanes[0].backoff >= 0.2, "several calls have failed")
        finally:
            self.db.execute("alter function pawl.read_reports_away(jsonb) rename to read_reports")
        for one in sent:
            self.assertEqual(self.client.wait(one, DEADLINE).result, "done")
            self.assertEqual(self.step_of(one)["deliveries"], 1)

    def test_so_many_are_kept_and_no_more(self) -> None:
        reference, (worker, _) = self.payment("23514"), self.payer()
        with mock.patch.object(apart, "MAX_APART", 2):
            self.start(worker)
            for n in (1, 2, 3):
                self.client.submit(reference, {"invoice": f"A-{n}"})
            lane = worker._lanes[0]
            self.until(lambda: self.value(f"select count(*) from {self.table} where status = 'paying'") == 3, "all were claimed")
            self.until(lambda: len(lane.held) == 2 and not lane.running and not lane.ended, "one is let go")
            self.assertEqual(self.client.wait(self.enqueue("other", 7), DEADLINE).result, 7)

    def test_a_later_delivery_takes_the_place_of_one_set_aside(self) -> None:
        reference, (worker, paid) = self.payment("23514"), self.payer()
        self.start(worker)
        self.client.submit(reference, {"invoice": "A-1"})
        self.assertTrue(paid.wait(DEADLINE))
        lane = worker._lanes[0]
        self.until(lambda: any(outcome.tries for outcome in lane.apart.outcomes), "it was refused alone")
        with lane.apart.changed, mock.patch.object(worker, "start_handler"):
            self.assertTrue(lane.apart.changed.wait_for(lambda: lane.apart.outcomes and lane.apart.trying is None, DEADLINE))
            [outcome] = lane.apart.outcomes
            lane._begin([{**outcome.delivery.body, "read_ct": outcome.delivery.read_ct + 1}], 0.0)
            self.assertFalse(lane.apart.outcomes)
            lane.apart.add([outcome])  # as it was being tried meanwhile
            self.assertFalse(lane.apart.outcomes)
            lane.held.clear()
            lane.running = 0


class LockedTest(Case):
    def setUp(self) -> None:
        super().setUp()
        # What a connection leaves behind that was cut before the commit arrived: its transaction goes on, and nobody ends it.
        self.orphan = psycopg.connect(self.url)
        self.addCleanup(self.orphan.close)

    def waiting(self) -> int:
        """How many of the workers' connections wait for a lock."""
        return self.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'pawl-worker' and datname = current_database()")

    def test_a_locked_message_holds_up_no_other(self) -> None:
        worker, locked, cut, release = self.worker(), threading.Event(), threading.Event(), threading.Event()
        for gate in (cut, release):
            self.addCleanup(gate.set)

        @worker.handler("book")
        def book(step: pawl.Step) -> None:
            step.complete_in(self.orphan, "booked")
            locked.set()
            cut.wait(2 * DEADLINE)
            raise ConnectionError("the connection was cut")

        @worker.handler("long")
        def long(step: pawl.Step) -> str:
            while not release.wait(0.05):
                step.check()
            return "done"

        worker.handler("other")(lambda value: value)
        sent: dict[str, Any] = {}
        self.start(worker)
        for name in ("book", "long"):
            sent[name] = self.client.submit(self.template({"name": "run", "handler": name, "lease_ms": 2000, "retry": {"max_attempts": 1}}))
        self.assertTrue(locked.wait(DEADLINE))
        self.until(lambda: self.step_of(sent["long"]).get("state") == "in_progress", "both run")
        began, most = self.value("select clock_timestamp()"), 0

        def three_leases_later() -> bool:
            nonlocal most
            most = max(most, self.waiting())
            return self.value(f"select count(*) from pgmq.q_{self.queue} where message->>'handler' = 'long' and read_ct = 1 and vt > %s::timestamptz + interval '6 s'", began) == 1

        self.until(three_leases_later, "the other handler has its step yet")
        # The report waits for the lock, and the others pass it.
        cut.set()
        others = [self.enqueue("other", n) for n in range(3)]
        for n, other in enumerate(others):
            self.assertEqual(self.client.wait(other, DEADLINE / 2).result, n)
            most = max(most, self.waiting())
        self.until(lambda: any(outcome.tries > 1 for outcome in worker._lanes[0].apart.outcomes), "the report was tried for itself")
        most = max(most, self.waiting())
        release.set()
        self.assertEqual(self.client.wait(sent["long"], DEADLINE).result, "done")
        self.assertEqual((self.step_of(sent["long"])["deliveries"], self.step_of(sent["book"])["state"]), (1, "in_progress"))
        self.assertLessEqual(most, 3, "one a connection: of the lane, of the leases, of what was set aside")
        self.orphan.rollback()
        with self.assertRaises(pawl.TaskFailed) as raised:
            self.client.wait(sent["book"], DEADLINE)
        self.assertEqual(raised.exception.task.error["message"], "the connection was cut")

    def test_a_locked_message_holds_up_no_giving_back(self) -> None:
        worker, running, release = self.worker(), [], threading.Event()
        self.addCleanup(release.set)

        @worker.handler("waits")
        def waits(which: str, step: pawl.Step) -> None:
            if which == "locks":
                step.complete_in(self.orphan)
            running.append(which)
            release.wait(DEADLINE)

        self.start(worker)
        for which in ("locks", "plain", "plain"):
            self.enqueue("waits", which)
        self.until(lambda: len(running) == 3, "all run")
        worker.stop(0)
        self.assertEqual(self.value(f"select count(*) from pgmq.q_{self.queue} where vt <= clock_timestamp()"), 2)


class CodesTest(unittest.TestCase):
    def test_what_a_refusal_is_about(self) -> None:
        def of(code: str | None) -> psycopg.Error:
            problem = psycopg.OperationalError("x") if code is None else psycopg.DatabaseError("x")
            problem.sqlstate = code
            return problem

        for code in ("23514", "23505", "P0001", "ABCDE", "22012", "PW016", "XX000", "42703"):
            self.assertTrue(refuses_report(of(code), False) and not is_locked(of(code)), code)
        for code in (None, "25006", "55P03", "PW010", "08006", "28000", "40001", "53300", "57P01", "57014", "58030"):
            self.assertFalse(refuses_report(of(code), True), code)
            self.assertEqual(is_locked(of(code)), code in ("55P03", "57014"), code)
        self.assertEqual([code for code in ("PW016", "22P05", "54000", "23514") if refuses_data(of(code))], ["PW016", "22P05", "54000"])
        for code in ("3F000", "42501", "42883", "42P01"):
            self.assertEqual([refuses_report(of(code), claims) for claims in (False, True)], [False, True])
        self.assertFalse(refuses_report(OSError(), True) or is_locked(OSError()))
