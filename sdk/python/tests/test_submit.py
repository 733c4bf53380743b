"""How requests are handed in: as tasks at once, or as messages for an orchestrator."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import psycopg

import pawl

from .support import DEADLINE, Case, Proxy

_COUNT = "select count(*) from pgmq.q_orchestration_task_requests where message->>'request_id' = %s"


class SubmitTest(Case):
    """There is no orchestrator here: what becomes a task does so by itself."""

    orchestrated = False

    def setUp(self) -> None:
        super().setUp()
        self.plain = self.template({"name": "run", "handler": "echo"})

    def assert_task(self, sent: pawl.Submitted) -> None:
        self.assertIsNone(sent.msg_id)
        self.assertEqual(self.client.get(sent).task_id, sent.task_id)
        self.assertEqual(self.client.decided(sent, 0), sent.task_id)
        self.assertEqual(self.value(_COUNT, str(sent.task_id)), 0)

    def assert_message(self, sent: pawl.Submitted) -> None:
        found = self.value("select message->>'request_id' from pgmq.q_orchestration_task_requests where msg_id = %s", sent.msg_id)
        self.assertEqual(found, str(sent.task_id))
        with self.assertRaises(pawl.UnknownTask):
            self.client.get(sent)
        with self.assertRaises(pawl.WaitTimeout):
            self.client.decided(sent, 0)

    def test_a_plain_request_is_a_task_at_once(self) -> None:
        sent = self.client.submit(self.plain, {"a": 1}, correlation_id="c-1", tags={"team": "x"}, requester="ann")
        self.assert_task(sent)
        task = self.client.get(sent)
        self.assertEqual((task.input, task.correlation_id, task.ended), ({"a": 1}, "c-1", False))
        self.assertEqual(self.value(f"select count(*) from pgmq.q_{self.queue} where message->>'task_id' = %s", str(sent.task_id)), 1)
        self.db.execute("select pawl.adhoc_template('default', 'echo', %s)", (self.queue,))
        self.assert_task(self.enqueue("echo", 2))
        with self.assertRaises(pawl.WaitTimeout):
            self.client.wait(sent, 0.05)  # nobody works on it
        with self.assertRaises(pawl.WaitTimeout):
            self.client.submit_and_wait(pawl.Request(template=self.plain), 0.05)

    def test_its_trace_is_kept(self) -> None:
        trace = "00-01000000000000000000000000000000-0200000000000000-01"
        [sent] = self.client.submit_many([pawl.Request(template=self.plain, traceparent=trace)])
        self.assert_task(sent)
        found = self.value(f"select headers->>'traceparent' from pgmq.q_{self.queue} where message->>'task_id' = %s", str(sent.task_id))
        self.assertEqual(found, trace)

    def test_many_plain_requests_are_tasks_at_once(self) -> None:
        requests = [pawl.Request(template=self.plain, input=i) for i in range(50)]
        sent = self.client.submit_many(requests)
        self.assertEqual([one.task_id for one in sent], [request.request_id for request in requests])
        self.assertEqual([self.client.get(one).input for one in sent], list(range(50)))
        self.assertEqual({one.msg_id for one in sent}, {None})

    def test_what_has_to_be_decided_is_a_message(self) -> None:
        self.assert_message(self.client.submit(self.plain, {"a": 1}, key=uuid.uuid4().hex))
        self.assert_message(self.client.submit("no_such/template"))
        self.assert_message(self.enqueue("nobody_has_asked_for_this"))
        with self.assertRaises(pawl.WaitTimeout):
            self.client.wait(self.client.submit(self.plain, key=uuid.uuid4().hex), 0.05)

    def test_one_that_has_to_be_decided_takes_the_others_along_in_their_order(self) -> None:
        requests = [pawl.Request(template=self.plain, input=i, key=uuid.uuid4().hex if i == 7 else None) for i in range(10)]
        sent = self.client.submit_many(requests)
        self.assertEqual([one.task_id for one in sent], [request.request_id for request in requests])
        for one in sent:
            self.assert_message(one)

    def test_in_a_callers_transaction_it_is_a_message(self) -> None:
        with psycopg.connect(self.url) as connection:
            sent = self.client.submit(self.plain, connection=connection)
            self.assertEqual(self.value(_COUNT, str(sent.task_id)), 0)
            connection.commit()
            self.assert_message(sent)
            [sent] = self.client.submit_many([pawl.Request(template=self.plain)], connection=connection)
            connection.commit()
            self.assert_message(sent)

        async def asynchronous() -> pawl.Submitted:
            async with await psycopg.AsyncConnection.connect(self.url) as connection:
                return await self.client.submit(self.plain, connection=connection)

        self.assert_message(asyncio.run(asynchronous()))

    def test_a_connection_that_commits_each_statement_is_refused(self) -> None:
        for submit in (self.client.submit, self.client.enqueue, lambda what, connection: self.client.submit_many([pawl.Request(template=what)], connection=connection)):
            with self.assertRaises(pawl.ConfigError) as raised:
                submit(self.plain, connection=self.db)
            self.assertIn("connection.transaction()", str(raised.exception))
        with self.db.transaction():
            inside = self.client.submit(self.plain, connection=self.db)
        self.assert_message(inside)

        async def asynchronous() -> pawl.Submitted:
            async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
                with self.assertRaises(pawl.ConfigError):
                    await self.client.submit(self.plain, connection=connection)
                async with connection.pipeline(), connection.transaction():
                    return await self.client.submit(self.plain, connection=connection)

        self.assert_message(asyncio.run(asynchronous()))

    def test_repeated_with_its_id_it_is_a_message_for_its_task(self) -> None:
        request = pawl.Request(template=self.plain, input="once")
        [first] = self.client.submit_many([request])
        self.assert_task(first)
        again, other = self.client.submit_many([request, pawl.Request(template=self.plain, input="other")])
        self.assertIsNotNone(again.msg_id)
        self.assert_message(other)
        self.assertEqual(self.client.get(request.request_id).input, "once")

    def test_a_role_that_may_only_send_messages_does(self) -> None:
        url, role = self.login()
        self.db.execute(f"grant usage on schema pgmq to {role}")
        self.db.execute(f"grant insert, select (msg_id) on pgmq.q_orchestration_task_requests to {role}")
        producer = pawl.Client(url)
        self.addCleanup(producer.close)
        self.assert_message(producer.submit(self.plain, {"a": 1}))
        sent = producer.submit_many([pawl.Request(template=self.plain) for _ in range(3)])
        self.assertEqual([one.msg_id for one in sent], sorted(one.msg_id for one in sent))
        for one in sent:
            self.assert_message(one)
        self.db.execute(f"grant usage on schema pawl to {role}")  # and still not the function
        other = pawl.Client(url)
        self.addCleanup(other.close)
        self.assert_message(other.submit(self.plain, {"a": 1}))
        # A producer by the project's own role may do both.
        whole = pawl.Client(self.login("pawl_producer")[0])
        self.addCleanup(whole.close)
        self.assert_task(whole.submit(self.plain))
        self.assert_message(whole.submit(self.plain, key=uuid.uuid4().hex))

    def test_a_client_of_an_older_database_sends_messages_from_then_on(self) -> None:
        self.db.execute("alter function pawl.submit_requests(text[], text[]) rename to submit_requests_away")
        try:
            sent = self.client.submit(self.plain)
        finally:
            self.db.execute("alter function pawl.submit_requests_away(text[], text[]) rename to submit_requests")
        self.assert_message(sent)
        self.assert_message(self.client.submit(self.plain))
        with pawl.Client(self.url) as later:
            self.assert_task(later.submit(self.plain))

    def test_what_the_database_refuses_is_raised(self) -> None:
        self.db.execute("alter table pgmq.q_orchestration_task_requests add constraint no_tea check (message->>'requester' <> 'tea') not valid")
        self.addCleanup(self.db.execute, "alter table pgmq.q_orchestration_task_requests drop constraint no_tea")
        with self.assertRaises(psycopg.errors.CheckViolation):
            self.client.submit(self.plain, key=uuid.uuid4().hex, requester="tea")
        self.assert_task(self.client.submit(self.plain))

    def test_the_first_look_at_a_fresh_request_comes_when_there_may_be_something_to_see(self) -> None:
        client = pawl.Client(self.url, listen=False)
        self.addCleanup(client.close)
        rows, calls = client._database.rows, []  # of each call: when it began and ended

        def noted(*arguments: Any) -> list[tuple[Any, ...]]:
            began = time.monotonic()
            try:
                return rows(*arguments)
            finally:
                calls.append((began, time.monotonic()))

        client._database.rows = noted
        for wait in (client.wait, client.decided):
            calls.clear()
            fresh = client.submit(self.plain, key=uuid.uuid4().hex)
            with self.assertRaises(pawl.WaitTimeout):
                wait(fresh, 0.05)
            submitted, looked = calls[:2]
            self.assertGreaterEqual(looked[0] - submitted[1], 0.005)
        calls.clear()
        fresh = client.submit(self.plain)
        with self.assertRaises(pawl.WaitTimeout):
            client.wait(fresh, 0.05)
        self.assertGreaterEqual(calls[1][0] - calls[0][1], 0.005)
        calls.clear()
        self.assertEqual(client.decided(fresh, 0), fresh.task_id)
        self.assertEqual(calls, [], "the answer is known")
        with self.assertRaises(pawl.WaitTimeout):
            client.wait(fresh, 0)
        self.assertGreaterEqual(len(calls), 1, "who has no time looks once")


class RepeatedTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.runs: list[uuid.UUID] = []
        worker = self.worker()
        worker.handler("echo")(lambda value, step: self.runs.append(step.task_id) or value)
        self.start(worker)
        self.plain = self.template({"name": "run", "handler": "echo"})

    def test_a_fresh_task_is_waited_for(self) -> None:
        polling = pawl.Client(self.url, listen=False)
        self.addCleanup(polling.close)
        for client in (self.client, polling):
            for n in range(5):
                self.assertEqual(client.submit_and_wait(pawl.Request(template=self.plain, input=n), DEADLINE).result, n)
                sent = client.submit(self.plain, n)
                self.assertIsNone(sent.msg_id)
                self.assertEqual(client.wait(sent, DEADLINE).task_id, sent.task_id)

    def test_a_request_repeated_with_its_id_attaches(self) -> None:
        request = pawl.Request(template=self.plain, input=1, request_id=pawl.new_request_id())
        [first] = self.client.submit_many([request])
        self.assertIsNone(first.msg_id)
        [second] = self.client.submit_many([request])
        self.assertEqual(self.client.decided(second, DEADLINE), first.task_id)
        for sent in (first, second):
            self.assertEqual(self.client.wait(sent, DEADLINE).result, 1)
        request.input = 2
        with self.assertRaises(pawl.TaskInputMismatch):
            self.client.submit_and_wait(request, DEADLINE)
        self.assertEqual(self.runs, [first.task_id])

    def test_a_submit_whose_answer_was_lost_is_repeated_and_meets_its_own_task(self) -> None:
        proxy = Proxy(self.url)
        self.addCleanup(proxy.close)
        client = pawl.Client(proxy.url)
        self.addCleanup(client.close)
        lost = proxy.lose_answer(b"submit_requests")
        sent = client.submit(self.plain, "once")
        self.assertTrue(lost.is_set())
        self.assertIsNotNone(sent.msg_id, "the second try")
        self.assertEqual(client.decided(sent, DEADLINE), sent.task_id)
        self.assertEqual(client.wait(sent, DEADLINE).result, "once")
        self.assertEqual(self.runs, [sent.task_id])
        self.assertEqual(self.value("select count(*) from pawl.tasks where template = %s", self.plain.partition("/")[2]), 1)

    def test_a_task_that_is_no_longer_kept_is_not_waited_for(self) -> None:
        sent = self.client.submit(self.plain, 1)
        self.client.wait(sent, DEADLINE)
        with self.db.transaction():
            for table in ("audit", "steps", "tasks"):
                self.db.execute(f"delete from pawl.{table} where task_id = %s", (sent.task_id,))
        with self.assertRaises(pawl.ResultExpired):
            self.client.wait(sent, DEADLINE)
