"""What a worker does with steps, against a real database and a real orchestrator."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import random
import string
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any, Callable
from unittest import mock

import psycopg

import pawl

from .support import DEADLINE, Case


@dataclass
class Order:
    order_id: str
    cents: int = 0


# A signal comes to the main thread while it holds the lock of an Event, of each on which it waits.
SIGNALLED = """
import signal, sys, threading
import pawl

worker, met = pawl.Worker(sys.argv[1]), []
worker.handler("x")(lambda: None)

def trace(frame, event, argument):
    on = frame.f_locals.get("self")
    if isinstance(on, threading.Event) and hasattr(on, "_cond") and on._cond._lock.locked() and on not in met:
        met.append(on)
        signal.raise_signal(signal.SIGTERM)
    return trace

signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.settrace(trace)
worker.run()
sys.exit(0 if met else 3)
"""


class WorkerTest(Case):
    def test_runs_sync_and_async_handlers_with_decoded_inputs(self) -> None:
        worker = self.worker()

        @worker.handler("sync")
        def sync(order: Order, step: pawl.Step) -> Order:
            self.assertEqual((step.name, step.attempt, step.delivery, step.queue), ("run", 1, 1, self.queue))
            return Order(order.order_id + "!", order.cents + 1)

        @worker.handler("async")
        async def asynchronous(order: Order) -> dict[str, str]:
            await asyncio.sleep(0)
            return {"id": order.order_id}

        self.start(worker)
        given = {"order_id": "ü-1 \U0001f600", "cents": 4, "unknown_to_the_handler": [1]}
        self.assertEqual(self.run_one("sync", given).result, {"order_id": "ü-1 \U0001f600!", "cents": 5})
        self.assertEqual(self.run_one("async", given).result, {"id": "ü-1 \U0001f600"})

    def test_an_async_handler_behind_a_decorator_that_is_none_is_awaited(self) -> None:
        worker, loops, running = self.worker(concurrency=1), [], threading.Event()

        def traced(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def inner(*arguments: Any) -> Any:
                return function(*arguments)

            return inner

        @worker.handler("adds")
        @traced
        async def adds(value: int) -> int:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return value + 1

        @worker.handler("plain")
        async def plain(value: int) -> int:
            loops.append(asyncio.get_running_loop())
            return value

        @worker.handler("sleeps")
        @traced
        async def sleeps(step: pawl.Step) -> None:
            running.set()
            await asyncio.sleep(DEADLINE)

        self.start(worker)
        self.assertEqual([self.run_one(name, 1).result for name in ("adds", "plain", "adds")], [2, 1, 2])
        self.assertEqual(len(set(loops)), 1, "they share a loop")
        sent = self.client.submit(self.template({"name": "run", "handler": "sleeps", "lease_ms": 1000}))
        self.assertTrue(running.wait(DEADLINE))
        self.client.cancel(sent, actor="test", reason="a test")
        self.until(lambda: not worker._lanes[0].running, "it was cancelled, and its slot is free")

    def test_gives_dependencies_config_and_a_stable_token(self) -> None:
        worker, tokens = self.worker(), []

        @worker.handler("first")
        def first(order: Order, step: pawl.Step) -> Order:
            tokens.append(step.token)
            if step.attempt == 1:
                raise ConnectionError("not yet")
            return order

        @worker.handler("second")
        def second(order: Order, step: pawl.Step) -> dict[str, object]:
            return {"cents": step.dependency("a", Order).cents, "config": step.config(dict[str, int]), "keys": sorted(step.dependencies)}

        reference = self.template(
            {"name": "a", "handler": "first", "retry": {"base_ms": 10}},
            {"name": "b", "handler": "second", "needs": [0], "config": {"x": 3}},
        )
        self.start(worker)
        task = self.client.wait(self.client.submit(reference, {"order_id": "1", "cents": 7}), DEADLINE)
        self.assertEqual(task.result, {"cents": 7, "config": {"x": 3}, "keys": ["a"]})
        self.assertEqual(len(tokens), 2)
        self.assertEqual(len(set(tokens)), 1)

    def test_errors_say_whether_to_try_again(self) -> None:
        worker = self.worker()

        @worker.handler("fails")
        def fails(how: str) -> None:
            raise {
                "permanent": pawl.Permanent("no such customer", type="unknown_customer"),
                "rejected": pawl.Rejected("not for this one"),
                "plain": ZeroDivisionError("twice\x00 over \ud800"),
                "later": pawl.RetryAfter("busy", after=0.05, type="busy"),
            }[how]

        self.start(worker)
        for how, error_type, attempts in (("permanent", "unknown_customer", 1), ("rejected", "error", 1)):
            with self.subTest(how), self.assertRaises(pawl.TaskFailed) as raised:
                self.run_one("fails", how)
            error = raised.exception.task.error
            self.assertIn(error_type, str(raised.exception))
            self.assertEqual(raised.exception.step, "run", error)
        for how, error_type in (("plain", "ZeroDivisionError"), ("later", "busy")):
            with self.subTest(how):
                reference = self.template({"name": "run", "handler": "fails", "retry": {"base_ms": 1, "max_attempts": 2}})
                sent = self.client.submit(reference, how)
                with self.assertRaises(pawl.TaskFailed):
                    self.client.wait(sent, DEADLINE)
                step = self.step_of(sent)
                self.assertEqual((step["attempt"], step["error"]["type"]), (2, error_type))

    def test_what_does_not_fit_or_cannot_be_stored_fails_for_good(self) -> None:
        worker = self.worker()

        @worker.handler("takes_order")
        def takes_order(order: Order) -> None:
            self.fail("the input does not fit")

        results = {"nul": "a\x00b", "surrogate": "\udc00", "nan": float("nan"), "large": "x" * 1_100_000, "number": 10**70}

        @worker.handler("returns")
        def returns(which: str) -> object:
            return results[which]

        self.start(worker)
        sent = {which: self.enqueue("returns", which) for which in results}
        sent["input"] = self.enqueue("takes_order", {"cents": "a secret"})
        for which, one in sent.items():
            with self.subTest(which), self.assertRaises(pawl.TaskFailed):
                self.client.wait(one, DEADLINE)
            step = self.step_of(one)
            self.assertEqual((step["attempt"], step["error"]["type"]), (1, "invalid_input" if which == "input" else "invalid_result"))
            self.assertNotIn("secret", step["error"]["message"])

    def test_a_result_that_only_the_database_refuses_harms_no_other(self) -> None:
        worker, gate = self.worker(concurrency=8), threading.Barrier(4)

        @worker.handler("returns")
        def returns(size: int) -> object:
            gate.wait(DEADLINE)
            # Just under the limit as sent, over it as the database writes it.
            return ["ab"] * size

        self.start(worker)
        sent = [self.enqueue("returns", size) for size in (1, 2, 209_000, 3)]
        for one in (sent[0], sent[1], sent[3]):
            self.assertEqual(self.client.wait(one, DEADLINE).status, "completed")
        with self.assertRaises(pawl.TaskFailed):
            self.client.wait(sent[2], DEADLINE)
        self.assertEqual(self.step_of(sent[2])["error"]["type"], "invalid_result")

    def test_never_runs_more_handlers_than_its_concurrency_and_fills_it(self) -> None:
        worker, lock, free = self.worker(concurrency=3), threading.Lock(), threading.Event()
        running, most = 0, 0

        @worker.handler("counts")
        def counts() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
                if running == 3:
                    free.set()
            self.assertTrue(free.wait(DEADLINE))
            with lock:
                running -= 1

        self.start(worker)
        sent = [self.enqueue("counts") for _ in range(30)]
        for one in sent:
            self.client.wait(one, DEADLINE)
        self.assertEqual(most, 3)

    def test_large_inputs_come_by_reference(self) -> None:
        worker = self.worker()

        @worker.handler("size")
        def size(text: str) -> int:
            return len(text)

        self.start(worker)
        blocks = "".join(random.Random(7).choices(string.ascii_letters, k=300_000))  # hardly compressible
        self.assertEqual(self.run_one("size", blocks).result, 300_000)

    def test_a_signal_ends_it_whatever_it_interrupts(self) -> None:
        done = subprocess.run([sys.executable, "-c", SIGNALLED, self.queue], env=self.server.environment, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_all_texts_are_said_whatever_the_clients_encoding(self) -> None:
        worker = self.worker()
        worker.handler("says")(lambda value: value + "\u20ac")
        with mock.patch.dict(os.environ, PGCLIENTENCODING="LATIN1"):
            self.start(worker)
            with pawl.Client(self.url) as client:
                self.assertEqual(client.wait(client.enqueue("says", "\u20ac", queue=self.queue), DEADLINE).result, "\u20ac\u20ac")

    def test_completes_inside_the_handlers_own_transaction(self) -> None:
        table = "effects_" + self.queue
        self.db.execute(f"create table {table} (token text)")
        worker = self.worker()

        @worker.handler("sync")
        def sync(which: str, step: pawl.Step) -> object:
            with psycopg.connect(self.url) as connection:
                connection.execute(f"insert into {table} values (%s)", (step.token,))
                step.complete_in(connection, {"which": which})
            return "not used"

        @worker.handler("async")
        async def asynchronous(which: str, step: pawl.Step) -> None:
            async with await psycopg.AsyncConnection.connect(self.url) as connection:
                await connection.execute(f"insert into {table} values (%s)", (step.token,))
                await step.complete_in(connection, {"which": which})

        @worker.handler("forgets")
        def forgets(step: pawl.Step) -> None:
            with psycopg.connect(self.url) as connection:
                connection.execute(f"insert into {table} values (%s)", (step.token,))
                step.complete_in(connection, 1)
                connection.rollback()

        self.start(worker)
        self.assertEqual(self.run_one("sync", "s").result, {"which": "s"})
        self.assertEqual(self.run_one("async", "a").result, {"which": "a"})
        reference = self.template({"name": "run", "handler": "forgets", "retry": {"max_attempts": 1}})
        sent = self.client.submit(reference)
        with self.assertRaises(pawl.TaskFailed):
            self.client.wait(sent, DEADLINE)
        self.assertEqual(self.step_of(sent)["error"]["type"], "transaction_not_committed")
        self.assertEqual(self.value(f"select count(*) from {table}"), 2)

    def test_a_connection_that_commits_each_statement_is_refused(self) -> None:
        worker = self.worker()

        @worker.handler("sync")
        def sync(inside: bool, step: pawl.Step) -> None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                with connection.transaction() if inside else contextlib.nullcontext():
                    step.complete_in(connection, "done")

        @worker.handler("async")
        async def asynchronous(inside: bool, step: pawl.Step) -> None:
            async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
                async with connection.transaction() if inside else contextlib.nullcontext():
                    await step.complete_in(connection, "done")

        self.start(worker)
        for name in ("sync", "async"):
            self.assertEqual(self.run_one(name, True).result, "done")
            with self.assertRaises(pawl.TaskFailed) as raised:
                self.run_one(name, False)
            self.assertEqual(raised.exception.task.error["type"], "no_transaction")
            self.assertIn("connection.transaction()", raised.exception.task.error["message"])

    def test_a_step_of_another_worker_goes_to_it(self) -> None:
        mine, other = self.worker(), self.worker()

        @mine.handler("mine")
        def handle_mine() -> str:
            return "mine"

        self.start(mine)
        sent = self.enqueue("other")
        self.until(lambda: self.value(f"select max(read_ct) from pgmq.q_{self.queue}"), "this worker has put it back")

        @other.handler("other")
        def handle_other() -> str:
            return "other"

        @other.handler("mine")
        def handle_both() -> str:
            return "mine"

        self.start(other)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, "other")
        self.assertEqual(self.run_one("mine").result, "mine")

    def test_a_handler_that_nobody_has_fails_in_the_end(self) -> None:
        worker = self.worker()
        worker.handler("mine")(lambda: None)
        reference = self.template({"name": "run", "handler": "nobodys", "retry": {"max_attempts": 1}})
        self.start(worker)
        sent = self.client.submit(reference)

        def ended() -> bool:  # each time it is put back for longer
            self.expire_lease(sent)
            worker._lanes[0].wake()
            return self.step_of(sent).get("state") == "error"

        self.until(ended, "the step has failed")
        self.assertEqual(self.step_of(sent)["error"]["type"], "unknown_handler")

    def test_fields_of_a_newer_engine_are_ignored(self) -> None:
        worker = self.worker()
        worker.handler("plain")(lambda value: value)
        sent = self.enqueue("plain", 5)
        self.until(lambda: self.step_of(sent), "there is a step")
        self.db.execute(f"update pgmq.q_{self.queue} set message = message || %s::text::jsonb", ('{"priority": 3, "hints": {"a": [1]}}',))
        self.start(worker)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, 5)

    def test_works_and_submits_with_least_rights(self) -> None:
        url, role = self.login()
        self.db.execute("select pawl.grant_queue(%s, %s)", (role, self.queue))
        worker = pawl.Worker(self.queue, database_url=url)
        worker.handler("size")(lambda text: len(text))
        self.start(worker)
        producer = pawl.Client(self.login("pawl_producer")[0])
        self.addCleanup(producer.close)
        sent = producer.enqueue("size", "x" * 300_000, queue=self.queue)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, 300_000)
        self.until(lambda: worker._listener.proven, "notifications arrive")
        with self.assertRaises(pawl.ConfigError) as raised:
            other = "q" + role[-12:]
            self.db.execute("select pawl.install_queue(%s)", (other,))
            refused = pawl.Worker(other, database_url=url)
            refused.handler("size")(len)
            refused.start()
        self.assertIn("grant_queue", str(raised.exception))
