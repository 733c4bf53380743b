"""Heartbeats, cancelling, lost leases, timeouts, stopping, outages."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
import time
from typing import Callable
from unittest import mock

import psycopg

import pawl
from pawl.database import Database, Guard, connector
from pawl.delivery import Delivery

from .support import DEADLINE, Case, Proxy


class LeaseTest(Case):
    def template_with_lease(self, **step: object) -> str:
        return self.template({"name": "run", "handler": "waits", "lease_ms": 1000, **step})

    def test_heartbeats_keep_the_lease_of_a_slow_handler(self) -> None:
        worker, go_on, runs = self.worker(), threading.Event(), []

        @worker.handler("waits")
        def waits(step: pawl.Step) -> int:
            runs.append(step.delivery)
            go_on.wait(DEADLINE)
            return step.delivery

        self.start(worker)
        sent = self.client.submit(self.template_with_lease())
        self.until(lambda: runs, "the handler runs")
        first = self.value(f"select vt from pgmq.q_{self.queue}")
        # Two leases later the message is still this worker's.
        self.until(lambda: self.value(f"select extract(epoch from vt - %s) > 2 from pgmq.q_{self.queue}", first), "the lease was extended")
        go_on.set()
        self.assertEqual(self.client.wait(sent, DEADLINE).status, "completed")

    def test_cancelling_the_task_reaches_sync_and_async_handlers(self) -> None:
        worker, seen, running = self.worker(), {}, {"sync": threading.Event(), "async": threading.Event()}

        @worker.handler("sync")
        def sync(step: pawl.Step) -> None:
            running["sync"].set()
            if step.cancelled.wait(DEADLINE):
                seen["sync"] = step.cause
            step.check()

        @worker.handler("async")
        async def asynchronous(step: pawl.Step) -> None:
            running["async"].set()
            try:
                await asyncio.sleep(DEADLINE)
            except asyncio.CancelledError:
                seen["async"] = step.cause
                raise

        self.start(worker)
        for name in ("sync", "async"):
            sent = self.client.submit(self.template({"name": "run", "handler": name, "lease_ms": 1000}))
            self.assertTrue(running[name].wait(DEADLINE))
            self.assertEqual(self.client.cancel(sent, actor="test", reason="a test"), "cancelled")
            self.until(lambda: name in seen, f"the {name} handler hears of it")
            self.assertIsInstance(seen[name], pawl.Cancelled)
            with self.assertRaises(pawl.TaskCancelled):
                self.client.wait(sent, DEADLINE)
            self.assertEqual(self.client.cancel(sent, actor="test", reason="again"), "unchanged")
        self.until(lambda: self.value(f"select count(*) from pgmq.q_{self.queue}") == 0, "the messages are gone")

    def test_a_lost_lease_stops_the_handler_and_its_result_does_not_count(self) -> None:
        first, second = self.worker(name="first"), self.worker(name="second")
        causes, running = [], threading.Event()

        @first.handler("waits")
        def slow(step: pawl.Step) -> str:
            running.set()
            step.cancelled.wait(DEADLINE)
            causes.append(step.cause)
            return "of the first"

        @second.handler("waits")
        def quick(step: pawl.Step) -> str:
            return f"of the second, delivery {step.delivery}"

        self.start(first)
        sent = self.client.submit(self.template_with_lease())
        self.assertTrue(running.wait(DEADLINE))
        with first._lanes[0].changed:  # it claims no more, as if it were busy
            first._lanes[0].stopping = True
        self.start(second)

        def lost() -> bool:  # heartbeats extend it all the time
            self.expire_lease(sent)
            second._lanes[0].wake()
            return bool(causes)

        self.until(lost, "the first handler is told")
        self.assertIsInstance(causes[0], pawl.LeaseLost)
        self.assertRegex(self.client.wait(sent, DEADLINE).result, "of the second, delivery [0-9]+")

    def take_again(self, worker: pawl.Worker, sent: pawl.Submitted, condition: Callable[[], object], what: str) -> None:
        """Has the worker lose its lease and claim the step once more."""

        def again() -> bool:
            if condition():
                return True
            self.expire_lease(sent)
            worker._lanes[0].wake()
            return bool(condition())

        self.until(again, what)

    def test_a_step_claimed_as_the_worker_stops_runs_or_goes_back(self) -> None:
        worker, go_on, runs, stops = self.worker(), threading.Event(), [], []
        self.addCleanup(go_on.set)

        @worker.handler("waits")
        def waits(step: pawl.Step) -> None:
            runs.append(step.delivery)
            go_on.wait(DEADLINE)

        self.start(worker)
        lane, cancel = worker._lanes[0], Delivery.cancel

        def stop_meanwhile(delivery: Delivery, cause: pawl.Interrupted) -> None:  # between claim and start
            if not stops and threading.current_thread() is lane.thread:
                stops.append(threading.Thread(target=worker.stop, args=(DEADLINE / 3,)))
                stops[0].start()
                self.until(lambda: lane.stopping, "the worker stops")
            cancel(delivery, cause)

        sent = self.enqueue("waits")
        self.until(lambda: runs, "the handler runs")
        with mock.patch.object(Delivery, "cancel", stop_meanwhile):
            self.take_again(worker, sent, lambda: stops, "the step was claimed again")
            self.until(lambda: lane.running == 2, "both deliveries have slots")
            go_on.set()
            self.until(lambda: not lane.running, "no slot is taken")
            stops[0].join(DEADLINE)
        self.assertEqual(len(runs), 2)

    def test_a_superseded_handler_frees_its_slot(self) -> None:
        worker, gates, runs = self.worker(concurrency=2, listen=False, poll=3600), [threading.Event(), threading.Event()], []
        for gate in gates:
            self.addCleanup(gate.set)

        @worker.handler("waits")
        def waits(step: pawl.Step) -> None:
            runs.append(step.delivery)
            gates[len(runs) - 1].wait(DEADLINE)

        worker.handler("quick")(lambda: "done")
        sent = self.enqueue("waits")
        self.start(worker)
        self.until(lambda: runs, "the handler runs")
        self.take_again(worker, sent, lambda: len(runs) == 2, "the step runs twice")
        waiting = self.enqueue("quick")
        self.until(lambda: self.step_of(waiting), "there is a step")
        worker._lanes[0].wake()
        gates[0].set()
        self.assertEqual(self.client.wait(waiting, DEADLINE / 3).result, "done")

    def test_leases_end_by_the_clock_while_the_database_is_silent(self) -> None:
        others = [f"{self.queue}{letter}" for letter in "abc"]
        for other in others:
            self.db.execute("select pawl.install_queue(%s)", (other,))
        worker, told = self.worker(queues=[self.queue, *others], concurrency=1), {}  # with no slot to claim it again
        running: set[str] = set()

        @worker.handler("waits")
        def waits(step: pawl.Step) -> None:
            running.add(step.queue)
            began = time.monotonic()
            if step.cancelled.wait(DEADLINE):
                told[step.queue] = time.monotonic() - began, step.cause

        self.start(worker)
        beating, silent = threading.Event(), threading.Event()
        self.addCleanup(silent.set)

        def hang(*_: object) -> None:  # as with packets that are dropped
            beating.set()
            silent.wait(DEADLINE)
            raise psycopg.OperationalError("no answer")

        with mock.patch.object(worker._beat._database, "call", hang):
            for queue in (self.queue, *others):
                steps = {"no": 0, "needs": [], "name": "run", "handler": "waits", "lease_ms": 2000, "queue": queue}
                self.client.submit(self.template(steps))
            self.until(lambda: len(running) == 4, "all run")
            self.until(lambda: len(told) == 4 or silent.is_set(), "all are told, and no call has returned")
            self.assertTrue(beating.is_set())
            for took, cause in told.values():
                self.assertIsInstance(cause, pawl.LeaseLost)
            silent.set()

    def test_a_call_that_cannot_connect_ends_in_time(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as mute:  # takes connections, and says nothing
            guard = Guard()
            self.addCleanup(guard.stop)
            address = f"postgres://nobody@127.0.0.1:{mute.getsockname()[1]}/x"
            began = time.monotonic()
            with self.assertRaises(psycopg.OperationalError):
                Database(connector(address, "pawl-test"), guard).rows("select 1", (), 2.0)
            self.assertLess(time.monotonic() - began, 8)

    def test_a_timeout_ends_the_handler(self) -> None:
        worker, causes = self.worker(), []

        @worker.handler("waits")
        async def waits(step: pawl.Step) -> None:
            try:
                await asyncio.sleep(DEADLINE)
            finally:
                causes.append(step.cause)

        self.start(worker)
        sent = self.client.submit(self.template({"name": "run", "handler": "waits", "timeout_ms": 300, "retry": {"max_attempts": 1}}))
        with self.assertRaises(pawl.TaskFailed):
            self.client.wait(sent, DEADLINE)
        self.until(lambda: causes, "the handler was stopped")
        self.assertIsInstance(causes[0], (pawl.TimedOut, pawl.Cancelled))  # the engine's clock may be first

    def test_stopping_lets_handlers_finish(self) -> None:
        worker, running, go_on = self.worker(), threading.Event(), threading.Event()

        @worker.handler("waits")
        def waits() -> str:
            running.set()
            go_on.wait(DEADLINE)
            return "finished"

        self.start(worker)
        sent = self.enqueue("waits")
        self.assertTrue(running.wait(DEADLINE))
        stopping = threading.Thread(target=worker.stop, args=(DEADLINE,))
        stopping.start()
        self.until(lambda: worker._lanes[0].stopping, "the worker stops")
        go_on.set()
        stopping.join(DEADLINE)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, "finished")

    def test_stopping_hands_back_what_does_not_finish(self) -> None:
        worker, running = self.worker(), []

        @worker.handler("stubborn")
        def stubborn(step: pawl.Step) -> str:
            running.append(step)
            threading.Event().wait(DEADLINE)
            return "too late"

        @worker.handler("heeds")
        async def heeds(step: pawl.Step) -> None:
            running.append(step)
            await asyncio.sleep(DEADLINE)

        self.start(worker)
        sent = [self.enqueue("stubborn"), self.enqueue("heeds")]
        self.until(lambda: len(running) == 2, "both run")
        worker.stop(0)
        for step in running:
            self.assertIsInstance(step.cause, pawl.Stopping)
        visible = f"select count(*) from pgmq.q_{self.queue} where vt <= clock_timestamp()"
        self.assertEqual(self.value(visible), 2)
        other = self.worker()
        for name in ("stubborn", "heeds"):
            other.handler(name)(lambda step: step.delivery)
        self.start(other)
        for one in sent:
            self.assertEqual(self.client.wait(one, DEADLINE).result, 2)
            self.assertEqual(self.step_of(one)["attempt"], 1)

    def test_results_are_kept_over_an_outage_and_reported_afterwards(self) -> None:
        proxy = Proxy(self.url)
        self.addCleanup(proxy.close)
        worker = pawl.Worker(self.queue, database_url=proxy.url)
        running, go_on, runs = threading.Event(), threading.Event(), []

        @worker.handler("waits")
        def waits(step: pawl.Step) -> str:
            runs.append(step.delivery)
            running.set()
            go_on.wait(DEADLINE)
            return "survived"

        self.start(worker)
        sent = self.enqueue("waits")
        self.assertTrue(running.wait(DEADLINE))
        proxy.cut()
        go_on.set()
        self.until(lambda: worker._lanes[0].backoff >= 0.2, "several calls have failed")
        self.assertEqual(self.step_of(sent)["state"], "in_progress")
        proxy.mend()
        self.assertEqual(self.client.wait(sent, DEADLINE).result, "survived")
        self.assertEqual(runs, [1])
        self.assertEqual(self.run_one("waits").result, "survived")
        self.until(lambda: worker._listener.proven, "the worker listens again")

    def test_wakes_up_for_new_work_without_polling(self) -> None:
        worker = self.worker(poll=3600, proven_poll=3600)
        worker.handler("quick")(lambda: "woken")
        self.start(worker)
        self.until(lambda: worker._listener.proven, "notifications are proven to arrive")
        lane = worker._lanes[0]
        for _ in range(3):
            self.until(lambda: lane._look_at > time.monotonic() + 1 and not lane.running, "the worker sleeps")
            self.assertEqual(self.run_one("quick").result, "woken")

    def test_listens_in_a_process_with_many_files(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 1400:
            self.skipTest("the machine allows too few open files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1400) if soft != resource.RLIM_INFINITY else soft, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            self.addCleanup(os.close, os.dup(0))
        worker = self.worker()
        worker.handler("quick")(lambda: "woken")
        # psycopg without its C part waits with select() too, unless it is told otherwise.
        with mock.patch.object(psycopg.waiting, "wait", psycopg.waiting.wait_selector):
            self.start(worker)
            self.until(lambda: worker._listener.proven, "notifications are proven to arrive")
            with pawl.Client(self.url) as client:
                self.assertEqual(client.wait(client.enqueue("quick", queue=self.queue), DEADLINE).result, "woken")
                self.until(lambda: client._listener.proven, "the client listens too")
            worker.stop(0)

    def test_what_cannot_be_reported_any_more_is_not_given_back(self) -> None:
        worker, running, release = self.worker(), threading.Event(), threading.Event()

        @worker.handler("waits")
        def waits() -> None:
            running.set()
            release.wait(DEADLINE)

        self.start(worker)
        self.enqueue("waits")
        self.assertTrue(running.wait(DEADLINE))
        lane, calls = worker._lanes[0], []
        worker.dead.set()  # the last calls have hung
        with mock.patch.object(lane.database, "call", lambda *arguments: calls.append(arguments)):
            with lane.changed:
                lane.quitting = True
                lane.changed.notify()
            self.until(lambda: not lane.thread.is_alive(), "the lane has ended")
        release.set()
        self.assertFalse(lane.held or calls)

    def test_polls_where_nothing_listens(self) -> None:
        worker = self.worker(listen=False, poll=0.05)
        worker.handler("quick")(lambda: "polled")
        self.start(worker)
        self.assertEqual(self.run_one("quick").result, "polled")
