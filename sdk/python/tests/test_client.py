"""The client: requests, waiting, duplicates, refusals."""

from __future__ import annotations

import asyncio
import threading
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

import psycopg

import pawl
from pawl.database import connector
from pawl.testing import run_handler

from .support import DEADLINE, Case, Proxy


class ClientTest(Case):
    def setUp(self) -> None:
        super().setUp()
        worker = self.worker()
        worker.handler("echo")(lambda value: value)

        @worker.handler("fails")
        def fails() -> None:
            raise pawl.Permanent("no", type="never")

        self.start(worker)

    def test_waits_for_results_and_gets_tasks(self) -> None:
        sent = self.enqueue("echo", {"a": 1}, correlation_id="c-1", tags={"team": "x"})
        task = self.client.wait(sent, DEADLINE)
        self.assertEqual((task.task_id, task.status, task.result, task.correlation_id), (sent.task_id, "completed", {"a": 1}, "c-1"))
        self.assertTrue(task.ended)
        self.assertEqual(self.client.get(str(sent.task_id)), task)
        with self.assertRaises(pawl.UnknownTask):
            self.client.get(uuid.uuid4())

    def test_an_input_of_none_is_null_and_none_at_all_is_an_empty_object(self) -> None:
        self.assertIsNone(self.run_one("echo", None).input)
        self.assertEqual(self.run_one("echo").input, {})
        plain = self.template({"name": "run", "handler": "echo"})
        self.assertEqual([self.client.get(self.client.submit(plain, *given)).input for given in ((None,), ())], [None, {}])
        given = [run_handler(lambda value: value, "echo", *input).result for input in ((None,), ())]
        self.assertEqual(given, [None, {}])

    def test_raises_how_a_task_has_ended(self) -> None:
        with self.assertRaises(pawl.TaskFailed) as raised:
            self.run_one("fails")
        self.assertEqual(raised.exception.task.status, "failed")
        self.assertIn("never", str(raised.exception))
        late = self.enqueue("echo", run_at=datetime.now(timezone.utc) + timedelta(hours=1))
        with self.assertRaises(pawl.WaitTimeout):
            self.client.wait(late, 0.1)
        self.until(lambda: self.value("select count(*) from pawl.tasks where task_id = %s", late.task_id), "it is a task")
        self.assertEqual(self.client.cancel(late, actor="test", reason="a test"), "cancelled")
        with self.assertRaises(pawl.ClientError):
            self.client.cancel(self.run_one("echo").task_id, actor="test", reason="a test")

    def test_submits_in_the_callers_transaction(self) -> None:
        with psycopg.connect(self.url) as connection:
            rolled_back = self.client.enqueue("echo", 1, queue=self.queue, connection=connection)
            connection.rollback()
            kept = self.client.enqueue("echo", 2, queue=self.queue, connection=connection)
            connection.commit()
        self.assertEqual(self.client.wait(kept, DEADLINE).result, 2)
        with self.assertRaises(pawl.UnknownTask):
            self.client.get(rolled_back)

        async def asynchronous() -> pawl.Submitted:
            async with await psycopg.AsyncConnection.connect(self.url) as connection:
                return await self.client.enqueue("echo", 3, queue=self.queue, connection=connection)

        self.assertEqual(self.client.wait(asyncio.run(asynchronous()), DEADLINE).result, 3)

    def test_submits_many_in_order(self) -> None:
        requests = [pawl.Request(handler="echo", queue=self.queue, input=i) for i in range(50)]
        sent = self.client.submit_many(requests)
        self.assertEqual([one.task_id for one in sent], [request.request_id for request in requests])
        self.assertEqual([self.client.wait(one, DEADLINE).result for one in sent], list(range(50)))
        self.assertEqual(self.client.submit_many([]), [])

    def test_the_same_request_twice_is_one_task(self) -> None:
        request = pawl.Request(handler="echo", queue=self.queue, input="once")
        first, second = self.client.submit_many([request]), self.client.submit_many([request])
        self.assertEqual(self.client.wait(first[0], DEADLINE).task_id, self.client.wait(second[0], DEADLINE).task_id)
        self.assertEqual(self.client.submit_and_wait(request, DEADLINE).task_id, request.request_id)
        again = self.enqueue("echo", "once", request_id=request.request_id)
        self.assertEqual(self.client.wait(again, DEADLINE).result, "once")
        with self.assertRaises(pawl.TaskInputMismatch):
            self.run_one("echo", "another input", request_id=str(request.request_id))

    def test_a_duplicate_attaches_or_is_refused(self) -> None:
        key = uuid.uuid4().hex
        first = self.run_one("echo", {"n": 1}, key=key)
        attached = self.run_one("echo", {"n": 1}, key=key)
        self.assertEqual((attached.task_id, attached.result), (first.task_id, {"n": 1}))
        with self.assertRaises(pawl.TaskAlreadyCompleted) as raised:
            self.run_one("echo", {"n": 1}, key=key, on_duplicate="reject")
        self.assertEqual(raised.exception.existing_execution_id, str(first.task_id))
        self.assertEqual(raised.exception.details["result"], {"n": 1})
        with self.assertRaises(pawl.TaskInputMismatch):
            self.run_one("echo", {"n": 2}, key=key)
        waiting = self.enqueue("echo", key=key + "-", run_at=datetime.now(timezone.utc) + timedelta(hours=1))
        self.until(lambda: self.value("select count(*) from pawl.tasks where task_id = %s", waiting.task_id), "it is a task")
        with self.assertRaises(pawl.TaskAlreadyExists):
            self.run_one("echo", key=key + "-", on_duplicate="reject")

    def test_refuses_bad_requests_here_and_tells_what_the_engine_refused(self) -> None:
        for arguments in (
            {"template": "a/b", "handler": "c"}, {}, {"template": "a/b", "queue": self.queue}, {"handler": "c", "key": ""},
            {"handler": "c", "on_duplicate": "ignore"}, {"handler": "c", "run_at": datetime(2030, 1, 1)}, {"handler": "c", "input": "\x00"},
        ):  # fmt: skip
            with self.subTest(arguments), self.assertRaises(pawl.InvalidRequest):
                self.client.submit_many([pawl.Request(**arguments)])
        with self.assertRaises(pawl.InvalidRequest) as raised:
            self.client.wait(self.client.submit("no_such/template"), DEADLINE)
        self.assertIn("no_such/template", str(raised.exception))
        self.assertEqual(raised.exception.kind, "UnknownTemplate")
        keyed = self.template({"name": "run", "handler": "echo"}, identity={"strategy": "caller_provided"})
        with self.assertRaises(pawl.KeyRequired):
            self.client.wait(self.client.submit(keyed), DEADLINE)

    def test_goes_on_after_its_connection_was_cut(self) -> None:
        self.assertEqual(self.run_one("echo", 1).result, 1)
        self.db.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl-client' and datname = current_database()")
        self.assertEqual(self.run_one("echo", 2).result, 2)

    def client_behind(self, proxy: Proxy) -> pawl.Client:
        self.addCleanup(proxy.close)
        client = pawl.Client(proxy.url)
        self.addCleanup(client.close)
        self.assertEqual(client.wait(client.enqueue("echo", 0, queue=self.queue), DEADLINE).result, 0)
        return client

    def during_an_outage(self, proxy: Proxy, call: Callable[[], Any]) -> Any:
        """What the call gives that begins while the database is away, which comes back when the call has met that twice."""
        given: list[Any] = []

        def run() -> None:
            try:
                given.append(call())
            except Exception as problem:
                given.append(problem)

        proxy.cut()
        refused = proxy.refused
        caller = threading.Thread(target=run)
        caller.start()
        self.until(lambda: given or proxy.refused >= refused + 3, "the client has tried again")
        proxy.mend()
        caller.join(DEADLINE)
        if isinstance(given[0], Exception):
            raise given[0]
        return given[0]

    def test_waiting_and_submitting_outlast_an_outage(self) -> None:
        proxy = Proxy(self.url)
        client = self.client_behind(proxy)
        sent = self.enqueue("echo", 3)
        self.assertEqual(self.during_an_outage(proxy, lambda: client.wait(sent, DEADLINE)).result, 3)
        keyed = self.enqueue("echo", 4, key=uuid.uuid4().hex)
        self.assertEqual(self.during_an_outage(proxy, lambda: client.decided(keyed, DEADLINE)), keyed.task_id)
        again = self.during_an_outage(proxy, lambda: client.enqueue("echo", 5, queue=self.queue))
        self.assertEqual(client.wait(again, DEADLINE).result, 5)
        proxy.cut()
        with self.assertRaises(pawl.WaitTimeout):
            client.wait(self.enqueue("echo", 6), 0.3)
        with self.assertRaises(pawl.WaitTimeout):
            client.decided(keyed, 0.3)

    def test_closing_twice_is_closing_once(self) -> None:
        with pawl.Client(self.url) as client:
            client.wait(client.enqueue("echo", 1, queue=self.queue), DEADLINE)
            client.close()
        client.close()

    def test_connecting_says_its_name_in_the_same_breath(self) -> None:
        proxy = Proxy(self.url)
        self.addCleanup(proxy.close)
        asked = proxy.lose_answer(b"set_config")
        for url, name in ((proxy.url, "pawl-test"), (f"{proxy.url}{'&' if '?' in proxy.url else '?'}application_name=mine", "mine")):
            with connector(url, "pawl-test")() as connection:
                self.assertEqual(connection.execute("select current_setting('application_name')").fetchone()[0], name)
        self.assertFalse(asked.is_set())
