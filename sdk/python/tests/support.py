"""A database of its own with an orchestrator for the whole run, and what tests wait with."""

from __future__ import annotations

import atexit
import json
import logging
import os
import select
import socket
import subprocess
import threading
import time
import unittest
import uuid
from pathlib import Path
from typing import Any, Callable
from urllib.parse import urlsplit, urlunsplit

import psycopg

import pawl
from pawl.task import NO_INPUT

logging.getLogger("pawl").addHandler(logging.NullHandler())
logging.getLogger("pawl").propagate = bool(os.environ.get("PAWL_TEST_LOG"))
if os.environ.get("PAWL_TEST_LOG"):
    logging.basicConfig(level="DEBUG", format="%(relativeCreated)d %(threadName)s %(levelname)s %(message)s")

ROOT = Path(__file__).resolve().parents[3]
SDK = ROOT / "sdk" / "python"
DEADLINE = 60.0  # seconds: far beyond what anything takes on a busy machine


def program(name: str) -> str:
    """A binary of the project: $PAWL_TEST_BIN, else bin/, where `make build` puts it."""
    path = Path(os.environ.get("PAWL_TEST_BIN") or ROOT / "bin") / name
    if not path.exists():
        raise RuntimeError(f"there is no {path}: run the tests with `make sdk-python`, or `make build` first")
    return str(path)


class Server:
    """A database of this run, with an orchestrator or without. Each is made once, and dropped at exit."""

    _lock = threading.Lock()
    _made: dict[bool, Server] = {}  # guarded by _lock: with an orchestrator, without

    @classmethod
    def get(cls, orchestrated: bool = True) -> Server:
        with cls._lock:
            if orchestrated not in cls._made:
                cls._made[orchestrated] = Server(orchestrated)
            return cls._made[orchestrated]

    def __init__(self, orchestrated: bool) -> None:
        admin = os.environ.get("PAWL_TEST_DATABASE_URL")
        if not admin:
            raise RuntimeError("PAWL_TEST_DATABASE_URL is not set: run the tests with `make sdk-python`")
        self._admin, name = admin, f"pawl_python_{os.getpid()}_{uuid.uuid4().hex[:6]}"
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        self.url = urlunsplit(urlsplit(admin)._replace(path=f"/{name}"))
        self._name = name
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.environment = os.environ | {"PAWL_DATABASE_URL": self.url, "PYTHONPATH": str(SDK), "PYTHONUNBUFFERED": "1", "PAWL_LISTEN": address, "PAWL_WORKER_TOKEN": "test-token"}
        self.environment |= {"PAWL_URL": f"http://{address}", "PAWL_TOKEN": "test-token"}
        atexit.register(self.stop)
        self.orchestrator: subprocess.Popen[bytes] | None = None
        subprocess.run([program("pawl"), "migrate"], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        if orchestrated:
            self.orchestrator = subprocess.Popen([program("orchestrator")], env=self.environment, stderr=None if os.environ.get("PAWL_TEST_LOG") else subprocess.DEVNULL)

    def stop(self) -> None:
        if self.orchestrator:
            self.orchestrator.terminate()
            try:
                self.orchestrator.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.orchestrator.kill()
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(f"drop database if exists {self._name} with (force)")


class Case(unittest.TestCase):
    """A test with a queue of its own, a client, and workers that are stopped at its end."""

    orchestrated = True

    def setUp(self) -> None:
        self.server = Server.get(self.orchestrated)
        self.url = self.server.url
        self.queue = "q" + uuid.uuid4().hex[:12]
        self.db = psycopg.connect(self.url, autocommit=True)
        self.addCleanup(self.db.close)
        self.db.execute("select pawl.install_queue(%s)", (self.queue,))
        self.client = pawl.Client(self.url)
        self.addCleanup(self.client.close)

    def worker(self, **options: Any) -> pawl.Worker:
        """A worker on the test's queue; `self.start` starts it."""
        return pawl.Worker(options.pop("queues", self.queue), database_url=self.url, **options)

    def start(self, worker: pawl.Worker) -> pawl.Worker:
        worker.start()
        self.addCleanup(worker.stop, 0)
        return worker

    def enqueue(self, handler: str, input: Any = NO_INPUT, **options: Any) -> pawl.Submitted:  # noqa: A002
        return self.client.enqueue(handler, input, queue=self.queue, **options)

    def run_one(self, handler: str, input: Any = NO_INPUT, **options: Any) -> pawl.Task:  # noqa: A002
        return self.client.wait(self.enqueue(handler, input, **options), DEADLINE)

    def template(self, *steps: dict[str, Any], **fields: Any) -> str:
        """Registers a template of steps, {name, handler, needs: [numbers], …}, on the test's queue; returns its reference."""
        name = "t" + uuid.uuid4().hex[:12]
        full = [{"no": no, "queue": self.queue, "needs": [], **step} for no, step in enumerate(steps)]
        definition = {"namespace": "test", "name": name, "version": "1", "steps": full, **fields}
        self.db.execute("select pawl.register_template(%s::text::jsonb)", (json.dumps(definition),))
        return f"test/{name}"

    def value(self, sql: str, *arguments: Any) -> Any:
        row = self.db.execute(sql, arguments).fetchone()
        return row[0] if row else None

    def step_of(self, task: pawl.Submitted, step: str = "run") -> dict[str, Any]:
        """The row of a task's step; empty while there is none."""
        return self.value("select to_jsonb(s) from pawl.steps s where task_id = %s and step = %s", task.task_id, step) or {}

    def audit(self, task: pawl.Submitted, step: str = "run") -> list[tuple[str, str, int, int]]:
        rows = self.db.execute("select from_state, to_state, attempt, delivery from pawl.audit where task_id = %s and step = %s order by revision", (task.task_id, step))
        return rows.fetchall()

    def login(self, *member_of: str) -> tuple[str, str]:
        """A role of the test's own that may log in, and the URL with which it does."""
        role = "pawl_test_" + uuid.uuid4().hex[:12]
        self.db.execute("select pawl.install_roles()")
        self.db.execute(f"create role {role} login password '{role}'")
        for other in member_of:
            self.db.execute(f"grant {other} to {role}")

        def drop() -> None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", (role,))
                connection.execute(f"drop owned by {role}")
                connection.execute(f"drop role {role}")

        self.addCleanup(drop)
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=f"{role}:{role}@{parts.hostname}:{parts.port}")), role

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits until the condition holds, and returns what it gave."""
        until = time.monotonic() + DEADLINE
        pause = threading.Event()
        while not (found := condition()):
            self.assertLess(time.monotonic(), until, f"waited in vain until {what}")
            pause.wait(0.02)
        return found

    def expire_lease(self, task: pawl.Submitted) -> None:
        """Ends the lease of the task's message now."""
        self.db.execute(f"update pgmq.q_{self.queue} set vt = clock_timestamp() where message->>'task_id' = %s", (str(task.task_id),))


class Proxy:
    """A way to the database that can be closed and opened: an outage."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._server = socket.create_server(("127.0.0.1", 0))
        address = f"{parts.username or 'postgres'}{':' + parts.password if parts.password else ''}@127.0.0.1:{self._server.getsockname()[1]}"
        self.url = urlunsplit(parts._replace(netloc=address))
        self._lock = threading.Lock()
        self._open = True  # guarded by _lock
        self.refused = 0  # guarded by _lock: connections that came while it was closed
        self._losing: dict[bytes, threading.Event] = {}  # guarded by _lock: statements whose answers are to be lost
        self._pairs: list[tuple[socket.socket, socket.socket]] = []  # guarded by _lock
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends all connections and refuses new ones."""
        with self._lock:
            self._open = False
            for pair in self._pairs:
                for end in pair:
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            self._pairs.clear()

    def mend(self) -> None:
        with self._lock:
            self._open = True

    def lose_answer(self, statement: bytes) -> threading.Event:
        """Ends the connection over which the statement comes next, when the database has answered and nobody has heard it.
        The event tells that it has come."""
        with self._lock:
            return self._losing.setdefault(statement, threading.Event())

    def close(self) -> None:
        self.cut()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                if not self._open:
                    self.refused += 1
                    near.close()
                    continue
                far = socket.create_connection(self._target)
                self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _loses(self, data: bytes) -> bool:
        with self._lock:
            found = [statement for statement in self._losing if statement in data]
            for statement in found:
                self._losing.pop(statement).set()
            return bool(found)

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        deaf = False
        try:
            while True:
                readable, _, _ = select.select([near, far], [], [])
                for end in readable:
                    data = end.recv(65536)
                    if not data or deaf and end is far:
                        return
                    deaf = deaf or end is near and self._loses(data)
                    (far if end is near else near).sendall(data)
        except (OSError, ValueError):
            return
        finally:
            near.close()
            far.close()
