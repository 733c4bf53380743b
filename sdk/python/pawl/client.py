"""The producer's side: submit tasks, wait for them, look at them, cancel them."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Coroutine, Iterable, Sequence, TypeVar, Unpack, overload
from uuid import UUID

import psycopg

from .codec import parse
from .database import Database, Guard, at_once, connector, explain, find_url
from .errors import ClientError, ConfigError, UnknownTask
from .listen import Listener
from .task import NO_INPUT, HandlerOptions, Request, RequestOptions, Submitted, Task
from .waits import TASK, Wait, Waits, id_of, is_made, task_of
from .worker import POLL, PROVEN_POLL

Answer = TypeVar("Answer")
Connection = psycopg.Connection[Any]
AsyncConnection = psycopg.AsyncConnection[Any]
Sending = Coroutine[Any, Any, Answer]

_SEND = """select * from pgmq.send_batch('orchestration_task_requests'::text, %s::text[]::jsonb[], %s::text[]::jsonb[], 0)"""

# Null when all are tasks at once, else the ids of their messages.
_SUBMIT = "select pawl.submit_requests(%s::text[], %s::text[])"
# The role may not call the function, or an older database does not have it.
_UNAVAILABLE = ("42501", "42883", "3F000")

_PAUSES = (0.0, 0.1, 0.3, 1.0, 3.0)  # seconds before a statement that met a lost connection is said again: a restart takes as long
_CLOSING = 5.0  # seconds that closing waits for a look that is under way


class Client:
    """Submits tasks and waits for them. It may be shared by threads.

    database_url: default PAWL_DATABASE_URL, else a running `pawl dev`.
    poll, proven_poll: seconds between looks while waiting, when notifications are not, and are, proven to arrive.
    listen: False does without LISTEN, for transaction poolers.
    """

    def __init__(self, database_url: str | None = None, *, poll: float = POLL, proven_poll: float = PROVEN_POLL, listen: bool = True) -> None:
        self._connect = connector(find_url(database_url), "pawl-client")
        self._poll, self._proven_poll, self._listen = poll, proven_poll, listen
        self._met = False  # the database has answered
        self._send_only = False  # the role has turned out to have no right to more than sending messages
        self._closed = False
        self._open()
        _clients.add(self)

    def _open(self) -> None:
        self._guard = Guard()
        self._database = Database(self._connect, self._guard)
        self._waits = Waits(lambda sql, arguments: self._rows(sql, arguments, _PAUSES[:1]), lambda problem: self._met and _is_outage(problem), self._idle)
        self._once = threading.Lock()
        self._listener: Listener | None = None  # guarded by _once
        if self._closed:
            self.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client's connections, for good: who waits gets ClientError, and so does who calls anything afterwards. It
        can be called any number of times."""
        self._closed = True
        self._waits.close()
        with self._once:
            if self._listener:
                self._listener.stop()
        self._database.close(for_good=True)
        self._waits.join(_CLOSING)
        self._guard.stop()

    @overload
    def submit(self, template: str, input: Any = NO_INPUT, *, connection: Connection | None = None, **options: Unpack[RequestOptions]) -> Submitted: ...
    @overload
    def submit(self, template: str, input: Any = NO_INPUT, *, connection: AsyncConnection, **options: Unpack[RequestOptions]) -> Sending[Submitted]: ...

    def submit(self, template: str, input: Any = NO_INPUT, *, connection: Any = None, **options: Any) -> Any:  # noqa: A002
        """Starts a task of a template ("namespace/name", the latest version, or "namespace/name@version").

        input: any JSON; None is null, and without one {} is sent.
        options are the fields of Request: key, on_duplicate, run_at, reply_to, correlation_id, tags, requester, request_id.
        connection: a psycopg connection of the caller. The request is then part of its transaction and starts when that
        commits; with a psycopg.AsyncConnection the call is awaited. Without it the request is durable on return, and a task
        already when nothing has to be decided: no key, no start time, no reply, an input that needs no look at a schema.

        Returns Submitted. Raises InvalidRequest for what can be seen here; what only the engine knows (does the template
        exist, does the input fit its schema) `wait` tells. Raises ConfigError for a connection in autocommit mode on which
        no transaction is open.
        """
        return self._send_one(Request(template=template, input=input, **options), connection)

    @overload
    def enqueue(self, handler: str, input: Any = NO_INPUT, *, connection: Connection | None = None, **options: Unpack[HandlerOptions]) -> Submitted: ...
    @overload
    def enqueue(self, handler: str, input: Any = NO_INPUT, *, connection: AsyncConnection, **options: Unpack[HandlerOptions]) -> Sending[Submitted]: ...

    def enqueue(self, handler: str, input: Any = NO_INPUT, *, connection: Any = None, **options: Any) -> Any:  # noqa: A002
        """Starts a task of one step that runs the handler. options: as submit, and namespace (default) and queue (the
        namespace's). Returns Submitted."""
        return self._send_one(Request(handler=handler, input=input, **options), connection)

    @overload
    def submit_many(self, requests: Iterable[Request], *, connection: Connection | None = None) -> list[Submitted]: ...
    @overload
    def submit_many(self, requests: Iterable[Request], *, connection: AsyncConnection) -> Sending[list[Submitted]]: ...

    def submit_many(self, requests: Iterable[Request], *, connection: Any = None) -> Any:
        """Submits several requests in one statement, all or none. Returns a list of Submitted, in their order."""
        return self._send(list(requests), connection)

    def _send_one(self, request: Request, connection: Any) -> Any:
        sent = self._send([request], connection)
        return sent[0] if isinstance(sent, list) else _first(sent)

    def _send(self, requests: list[Request], connection: Any) -> Any:
        if not requests:
            return _nothing() if isinstance(connection, psycopg.AsyncConnection) else []
        arguments = ([request.body() for request in requests], [request.headers() for request in requests])
        if problem := at_once(connection):
            raise ConfigError(f"submitting in a transaction: {problem}; without `connection` the client uses its own")
        if isinstance(connection, psycopg.AsyncConnection):
            return _send_async(connection, requests, arguments)
        if connection is not None:
            with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
                return _sent(requests, cursor.execute(_SEND, arguments).fetchall())
        return [
            Submitted(request.request_id, msg_id, request.gives_id, time.monotonic())
            for request, msg_id in zip(requests, self._submit(arguments))
        ]

    def _submit(self, arguments: tuple[list[str], list[str | None]]) -> list[int | None]:
        """Hands requests to the database, and returns the ids of their messages, None for those that are tasks already. A
        role that may do no more than send messages does that. Repeated after an outage, a request meets its own task."""
        if not self._send_only:
            try:
                return self._rows(_SUBMIT, arguments)[0][0] or [None] * len(arguments[0])
            except psycopg.Error as problem:
                if problem.sqlstate not in _UNAVAILABLE:
                    raise
                self._send_only = True
        return [msg_id for (msg_id,) in self._rows(_SEND, arguments)]

    def get(self, task: Submitted | UUID | str) -> Task:
        """The task as it is now. Raises UnknownTask; for a request that is not a task yet too, `wait` waits for it."""
        task_id = id_of(task)
        if not (rows := self._rows(TASK, (task_id,))):
            raise UnknownTask(f"there is no task {task_id}; a request that has just been sent is a task a moment later")
        return task_of(rows[0])

    def wait(self, task: Submitted | UUID | str, timeout: float | timedelta | None = None) -> Task:
        """Waits until the task has completed, and returns it.

        A request that attached to a task which exists is followed to that one. Raises TaskFailed, TaskCancelled or
        TaskTimedOut when it has ended otherwise; TaskAlreadyExists, TaskAlreadyCompleted, TaskInputMismatch or
        InvalidRequest when the request was refused; WaitTimeout when the time (seconds; None: any) is over.
        """
        self._listen_for_ends()
        return self._waits.wait(Wait(task, timeout.total_seconds() if isinstance(timeout, timedelta) else timeout))

    def decided(self, task: Submitted | UUID | str, timeout: float | None = None) -> UUID:
        """Waits until a request is decided, and returns the id of the task that it has made or met. Of one that became a task
        when it was submitted that is known; else an orchestrator decides.

        Raises what the request was refused with, and WaitTimeout.
        """
        return id_of(task) if is_made(task) else self._waits.wait(Wait(task, timeout, decision_only=True))

    def submit_and_wait(self, request: Request, timeout: float | timedelta | None = None) -> Task:
        """Sends a request and waits until its task has completed. Raises what submit and wait raise."""
        return self.wait(self._send_one(request, None), timeout)

    def cancel(self, task: Submitted | UUID | str, *, actor: str, reason: str) -> str:
        """Ends an open task as cancelled; running handlers hear of it with their next heartbeat. Who and why are kept.

        Returns "cancelled", or "unchanged" when it was already. Raises UnknownTask, and ClientError when it has ended otherwise.
        """
        try:
            answer = self._rows("select (pawl.cancel_task(%s, %s, %s))::text", (id_of(task), actor, reason))
        except psycopg.Error as problem:
            if problem.sqlstate == "PW020":
                raise UnknownTask(explain(problem)) from None
            if (problem.sqlstate or "").startswith("PW"):
                raise ClientError(explain(problem)) from None
            raise
        return parse(answer[0][0])["outcome"]

    def _rows(self, sql: str, arguments: Any, pauses: Sequence[float] = _PAUSES) -> list[tuple[Any, ...]]:
        """Runs a statement that may be repeated; one that met a lost connection is, after these pauses. A database that has
        never answered may be the wrong one: of that it is told soon."""
        for pause in pauses:
            if pause and not self._met:
                break
            try:
                return self._answered(sql, arguments)
            except psycopg.Error as problem:
                if not _is_outage(problem):
                    raise
            time.sleep(pause)
        return self._answered(sql, arguments)

    def _answered(self, sql: str, arguments: Any) -> list[tuple[Any, ...]]:
        rows = self._database.rows(sql, arguments)
        self._met = True
        return rows

    def _listen_for_ends(self) -> None:
        with self._once:
            if self._listen and self._listener is None and not self._closed:
                self._listener = Listener(self._connect, Database(self._connect, self._guard), logging.getLogger("pawl"))
                self._listener.subscribe("pawl_finished", self._waits.announced)
                self._listener.start()

    def _idle(self) -> float:
        return self._proven_poll if self._listener and self._listener.proven else self._poll


# A process that was forked has its parent's connections, locks in whatever state, and none of its threads.
_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_parents: list[object] = []  # what is never closed here: that would end the parent's sessions


def _after_fork() -> None:
    for client in list(_clients):
        _parents.append((client._guard, client._database, client._waits, client._listener))
        client._open()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _sent(requests: Sequence[Request], rows: list[tuple[Any, ...]]) -> list[Submitted]:
    return [Submitted(request.request_id, row[0], request.gives_id) for request, row in zip(requests, rows)]


def _is_outage(problem: psycopg.Error) -> bool:
    """Whether the database is away for now."""
    gone = isinstance(problem, (psycopg.OperationalError, psycopg.InterfaceError))
    return gone and (not problem.sqlstate or problem.sqlstate[:2] in ("08", "57"))


async def _send_async(connection: psycopg.AsyncConnection[Any], requests: list[Request], arguments: Any) -> list[Submitted]:
    async with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        await cursor.execute(_SEND, arguments)
        return _sent(requests, await cursor.fetchall())


async def _nothing() -> list[Submitted]:
    return []


async def _first(sending: Any) -> Submitted:
    return (await sending)[0]
