"""The client's connection: interrupted calls, closing, forks, and how many statements waiting costs."""

from __future__ import annotations

import signal
import threading

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
