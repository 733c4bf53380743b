"""The client's connection: interrupted calls, closing, forks, and how many statements waiting costs."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import uuid
from typing import Any

import pawl

from .support import DEADLINE, Case


class _SoftLimit(BaseException):
    """What a server's time limit raises in the middle of anything."""


class InterruptedTest(Case):
    orchestrated = False

    def test_what_a_signal_handler_raises_in_a_call_leaves_the_client_whole(self) -> None:
        def limit(*_: object) -> None:
            raise _SoftLimit

        former = signal.signal(signal.SIGALRM, limit)
        self.addCleanup(signal.signal, signal.SIGALRM, former)
        lock = self.db.cursor()
        sent = self.client.enqueue("echo", 1, queue=self.queue)
        with self.db.transaction():
            lock.execute("lock table pawl.tasks in access exclusive mode")
            ended = threading.Event()

            def ring() -> None:
                while not ended.wait(0.02):
                    if self.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'pawl-client' and datname = current_database()"):
                        signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
                        return

            ringer = threading.Thread(target=ring)
            ringer.start()
            try:
                with self.assertRaises(_SoftLimit):
                    self.client.cancel(sent, actor="test", reason="to wait for a lock")
            finally:
                ended.set()
                ringer.join(DEADLINE)
        self.assertIsInstance(self.client.enqueue("echo", 2, queue=self.queue), pawl.Submitted)


class SharedTest(Case):
    """Threads and processes that share a client."""

    def setUp(self) -> None:
        super().setUp()
        worker = self.worker()
        worker.handler("echo")(lambda value: value)
        self.start(worker)

    def waiting(self, client: pawl.Client, count: int) -> tuple[list[threading.Thread], list[Any]]:
        """Threads that wait for tasks which nobody works on, and what becomes of their waits."""
        given: list[Any] = []

        def wait(sent: pawl.Submitted) -> None:
            try:
                given.append(client.wait(sent, DEADLINE))
            except Exception as problem:
                given.append(problem)

        nobodys = self.template({"name": "run", "handler": "nobody_has_this", "queue": self.idle_queue()})
        sent = client.submit_many([pawl.Request(template=nobodys) for _ in range(count)])
        threads = [threading.Thread(target=wait, args=(one,)) for one in sent]
        for thread in threads:
            thread.start()
        return threads, given

    def idle_queue(self) -> str:
        name = "q" + uuid.uuid4().hex[:12]
        self.db.execute("select pawl.install_queue(%s)", (name,))
        return name

    def test_closing_ends_waits_and_no_call_opens_the_connection_again(self) -> None:
        client = pawl.Client(self.url)
        self.addCleanup(client.close)
        threads, given = self.waiting(client, 3)
        calls = self.counted(client)
        self.until(lambda: calls, "they wait")
        keyed = client.submit("no/such", key="k", run_at=None)
        client.close()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual([type(problem) for problem in given], [pawl.ClientError] * 3)
        self.assertIn("closed", str(given[0]))
        for call in (client.wait, client.decided, client.get):
            with self.assertRaises(pawl.ClientError) as raised:
                call(keyed)
            self.assertIn("the client is closed", str(raised.exception))
        with self.assertRaises(pawl.ClientError):
            client.enqueue("echo", 1, queue=self.queue)
        self.assertIsNone(client._database._connection)

    def counted(self, client: pawl.Client) -> list[str]:
        """The statements that the client makes from now on."""
        rows, calls = client._database.rows, []
        client._database.rows = lambda sql, *arguments: calls.append(sql) or rows(sql, *arguments)
        return calls

    def test_an_announcement_costs_one_look_however_many_wait(self) -> None:
        client = pawl.Client(self.url)
        threads, _ = self.waiting(client, 30)
        self.addCleanup(lambda: (client.close(), [thread.join(DEADLINE) for thread in threads]))
        self.until(lambda: client._listener and client._listener.proven, "announcements arrive")
        calls = self.counted(client)
        for n in range(10):
            self.run_one("echo", n)
        self.assertGreater(len(calls), 0)
        self.assertLess(len(calls), 5 * 30, "each waiter asked for itself")

    def test_a_forked_process_has_connections_of_its_own(self) -> None:
        if not hasattr(os, "fork"):
            self.skipTest("this system does not fork")
        client = pawl.Client(self.url)
        self.addCleanup(client.close)
        threads, given = self.waiting(client, 1)  # has the client listen, and its thread look
        self.until(lambda: client._listener and client._listener.proven, "announcements arrive")
        with client._database._lock:  # as if another thread were in the middle of a call
            [child, results] = self.fork(client)
        ours = [client.wait(client.enqueue("echo", f"parent {n}", queue=self.queue), DEADLINE).result for n in range(50)]
        self.assertEqual(ours, [f"parent {n}" for n in range(50)])
        self.assertEqual(json.loads(results.recv()), [f"child {n}" for n in range(50)])
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(client.wait(client.enqueue("echo", "after it", queue=self.queue), DEADLINE).result, "after it")
        self.assertEqual(given, [])
        client.close()
        threads[0].join(DEADLINE)

    def fork(self, client: pawl.Client) -> tuple[int, Any]:
        near, far = multiprocessing.Pipe()
        if child := os.fork():
            far.close()
            return child, near
        try:
            signal.alarm(int(DEADLINE))
            theirs = [client.wait(client.enqueue("echo", f"child {n}", queue=self.queue), DEADLINE).result for n in range(50)]
            far.send(json.dumps(theirs))
            client.close()
            os._exit(0)
        finally:
            os._exit(1)
