"""The producer's side: submit tasks, wait for them, look at them, cancel them."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import Any, Coroutine, Iterable, Sequence, TypeVar, Unpack, overload
from uuid import UUID

import psycopg

from .codec import parse
from .database import Database, Guard, at_once, connector, explain, find_url
from .errors import ENDS, REFUSALS, ClientError, ConfigError, InvalidRequest, KeyRequired, RequestError, ResultExpired, UnknownTask, WaitTimeout
from .lane import LOOK_AGAIN
from .listen import Listener
from .task import HandlerOptions, Request, RequestOptions, Submitted, Task
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

_TASK = """select t.task_id, t.namespace, t.template, t.version, t.state::text, pawl.public_status(t.state), t.key, t.correlation_id,
  t.input::text, t.result::text, t.error::text, t.requested_at, t.finalized_at from pawl.tasks t where t.task_id = %s"""

# What became of a request. Its message goes away in the transaction that decides it, which also makes its task, or leaves a
# trace: an absorbed row when a task holds its key or id, a dead letter when it is invalid. The message is asked for by its id,
# without "exists": that may become a hash of the whole queue, its dead rows passed.
_DECISION = """select coalesce((select true from pgmq.q_orchestration_task_requests q where q.msg_id = r.msg_id limit 1), false),
  t.task_id is not null,
  a.reason, a.task_id, a.message->>'key', pawl.public_status(h.state), h.finalized_at,
  case when a.reason = 'TaskAlreadyCompleted' then h.result::text end, d.reason
from (values (%s::uuid, %s::bigint)) r(request_id, msg_id)
left join pawl.tasks t on t.task_id = r.request_id
left join lateral (select x.reason, x.task_id, x.message from pawl.absorbed x
  where x.queue = 'orchestration_task_requests' and x.message->>'request_id' = r.request_id::text
    and x.msg_id = coalesce(r.msg_id, x.msg_id) order by x.absorbed_id desc limit 1) a on true
left join pawl.tasks h on h.task_id = a.task_id
left join lateral (select x.reason from pawl.dead_letters x where x.status = 'open'
    and x.queue = 'orchestration_task_requests' and x.message->>'request_id' = r.request_id::text
    and x.msg_id = coalesce(r.msg_id, x.msg_id) order by x.dead_letter_id desc limit 1) d on true"""

_PAUSES = (0.0, 0.1, 0.3, 1.0, 3.0)  # seconds before a statement that met a lost connection is said again: a restart takes as long
_UNDECIDED_POLL = 0.5  # seconds: decisions are not announced, ends are


class Client:
    """Submits tasks and waits for them. It may be shared by threads.

    database_url: default PAWL_DATABASE_URL, else a running `pawl dev`.
    poll, proven_poll: seconds between looks while waiting, when notifications are not, and are, proven to arrive.
    listen: False does without LISTEN, for transaction poolers.
    """

    def __init__(self, database_url: str | None = None, *, poll: float = POLL, proven_poll: float = PROVEN_POLL, listen: bool = True) -> None:
        self._connect = connector(find_url(database_url), "pawl-client")
        self._guard = Guard()
        self._database = Database(self._connect, self._guard)
        self._poll, self._proven_poll, self._listen = poll, proven_poll, listen
        self._ended = threading.Condition()
        self._news = 0  # guarded by _ended: counts announcements that tasks have ended
        self._listener: Listener | None = None  # guarded by _ended
        self._met = False  # the database has answered
        self._send_only = False  # the role has turned out to have no right to more than sending messages

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client's connections. It can be called any number of times."""
        if self._listener:
            self._listener.stop()
        self._database.close()
        self._guard.stop()

    @overload
    def submit(self, template: str, input: Any = None, *, connection: Connection | None = None, **options: Unpack[RequestOptions]) -> Submitted: ...
    @overload
    def submit(self, template: str, input: Any = None, *, connection: AsyncConnection, **options: Unpack[RequestOptions]) -> Sending[Submitted]: ...

    def submit(self, template: str, input: Any = None, *, connection: Any = None, **options: Any) -> Any:  # noqa: A002
        """Starts a task of a template ("namespace/name", the latest version, or "namespace/name@version").

        options are the fields of Request: key, on_duplicate, run_at, reply_to, correlation_id, tags, requester, request_id.
        connection: a psycopg connection of the caller. The request is then part of its transaction and starts when that
        commits; with a psycopg.AsyncConnection the call is awaited. Without it the request is durable on return, and a task
        already when nothing has to be decided: no key, no start time, no reply, an input that needs no look at a schema.

        Returns Submitted. Raises InvalidRequest for what can be seen here; what only the engine knows (does the template
        exist, does the input fit its schema) `wait` tells. Raises ConfigError for a connection in autocommit mode on which
        no transaction is open.
        """
        return self._send_one(Request(template=template, input={} if input is None else input, **options), connection)

    @overload
    def enqueue(self, handler: str, input: Any = None, *, connection: Connection | None = None, **options: Unpack[HandlerOptions]) -> Submitted: ...
    @overload
    def enqueue(self, handler: str, input: Any = None, *, connection: AsyncConnection, **options: Unpack[HandlerOptions]) -> Sending[Submitted]: ...

    def enqueue(self, handler: str, input: Any = None, *, connection: Any = None, **options: Any) -> Any:  # noqa: A002
        """Starts a task of one step that runs the handler. options: as submit, and namespace (default) and queue (the
        namespace's). Returns Submitted."""
        return self._send_one(Request(handler=handler, input={} if input is None else input, **options), connection)

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
        task_id = _id(task)
        found = self._look(task_id)
        if found is None:
            raise UnknownTask(f"there is no task {task_id}; a request that has just been sent is a task a moment later")
        return found

    def wait(self, task: Submitted | UUID | str, timeout: float | timedelta | None = None) -> Task:
        """Waits until the task has completed, and returns it.

        A request that attached to a task which exists is followed to that one. Raises TaskFailed, TaskCancelled or
        TaskTimedOut when it has ended otherwise; TaskAlreadyExists, TaskAlreadyCompleted, TaskInputMismatch or
        InvalidRequest when the request was refused; WaitTimeout when the time (seconds; None: any) is over.
        """
        if isinstance(timeout, timedelta):
            timeout = timeout.total_seconds()
        until = None if timeout is None else time.monotonic() + timeout
        self._listen_for_ends()
        request, task_id, attached = None if _made(task) else task, _id(task), False
        early = _early(task) if until is None else min(_early(task), until - time.monotonic())
        with self._ended:
            looks, seen = 0, self._news
            if early > 0:
                self._ended.wait_for(lambda: self._news != seen, early)
        while True:
            with self._ended:
                if self._news != seen:
                    seen, looks = self._news, 0
            found, outage = None, None
            try:
                found = self._look(task_id, _PAUSES[:1])
                if request is not None and (found is None or isinstance(request, Submitted) and request.gives_id):
                    if (holder := self._decide(request, _PAUSES[:1])) is not None:
                        request, attached, task_id = None, holder != task_id, holder
                        continue
                    found = None  # of another request with the same id
                elif found is None:
                    what = f"task {task_id}, which holds the key, has completed" if attached else f"task {task_id} has ended"
                    raise ResultExpired(f"{what}, and was removed when its retention was over")
            except psycopg.Error as problem:
                if not self._met or not _is_outage(problem):
                    raise
                outage, found = problem, None
            if found is not None and found.ended:
                if found.status != "completed":
                    raise ENDS[found.status](found)
                return found
            pause = LOOK_AGAIN[looks] if looks < len(LOOK_AGAIN) else self._idle()
            if found is None:
                pause = min(pause, _UNDECIDED_POLL)
            looks += 1
            if until is not None:
                pause = min(pause, until - time.monotonic())
                if pause <= 0:
                    raise WaitTimeout(f"task {task_id} has not ended within {timeout:g} s; it goes on") from outage
            with self._ended:
                self._ended.wait_for(lambda: self._news != seen, pause)

    def decided(self, task: Submitted | UUID | str, timeout: float | None = None) -> UUID:
        """Waits until a request is decided, and returns the id of the task that it has made or met. Of one that became a task
        when it was submitted that is known; else an orchestrator decides.

        Raises what the request was refused with, and WaitTimeout.
        """
        if _made(task):
            return _id(task)
        until, looks = None if timeout is None else time.monotonic() + timeout, 0
        if (early := _early(task)) > 0:
            time.sleep(early if timeout is None else max(0.0, min(early, timeout)))
        while True:
            outage = None
            try:
                if (found := self._decide(task, _PAUSES[:1])) is not None:
                    return found
            except psycopg.Error as problem:
                if not self._met or not _is_outage(problem):
                    raise
                outage = problem
            if until is not None and time.monotonic() > until:
                raise WaitTimeout(f"no orchestrator has taken request {_id(task)} within {timeout:g} s; it waits in the queue") from outage
            time.sleep(LOOK_AGAIN[looks] if looks < len(LOOK_AGAIN) else _UNDECIDED_POLL)
            looks += 1

    def submit_and_wait(self, request: Request, timeout: float | timedelta | None = None) -> Task:
        """Sends a request and waits until its task has completed. Raises what submit and wait raise."""
        return self.wait(self._send_one(request, None), timeout)

    def cancel(self, task: Submitted | UUID | str, *, actor: str, reason: str) -> str:
        """Ends an open task as cancelled; running handlers hear of it with their next heartbeat. Who and why are kept.

        Returns "cancelled", or "unchanged" when it was already. Raises UnknownTask, and ClientError when it has ended otherwise.
        """
        try:
            answer = self._rows("select (pawl.cancel_task(%s, %s, %s))::text", (_id(task), actor, reason))
        except psycopg.Error as problem:
            if problem.sqlstate == "PW020":
                raise UnknownTask(explain(problem)) from None
            if (problem.sqlstate or "").startswith("PW"):
                raise ClientError(explain(problem)) from None
            raise
        return parse(answer[0][0])["outcome"]

    def _look(self, task_id: UUID, pauses: Sequence[float] = _PAUSES) -> Task | None:
        rows = self._rows(_TASK, (task_id,), pauses)
        if not rows:
            return None
        *head, given, result, error, requested_at, finalized_at = rows[0]
        given, result, error = (None if text is None else parse(text) for text in (given, result, error))
        return Task(*head, given, result, error, requested_at, finalized_at)

    def _decide(self, request: Submitted | UUID | str, pauses: Sequence[float] = _PAUSES) -> UUID | None:
        """The task that a request has made or met; None while it is not decided. Raises what it was refused with."""
        request_id, msg_id = _id(request), request.msg_id if isinstance(request, Submitted) else None
        pending, exists, absorbed, holder, key, status, completed_at, result, dead = self._rows(_DECISION, (request_id, msg_id), pauses)[0]
        if pending:
            return None
        if dead:
            kind, colon, text = dead.partition(": ")
            if not colon or " " in kind:  # a message that could not be processed, in the engine's words
                raise InvalidRequest(dead)
            raise (KeyRequired if kind == "KeyRequired" else InvalidRequest)(text, kind)
        if absorbed == "duplicate request":
            return holder
        if absorbed:
            details = {"error": absorbed, "key": key, "existing_execution_id": str(holder), "status": status}
            if absorbed == "TaskAlreadyCompleted":
                details |= {"completed_at": completed_at, "result": None if result is None else parse(result)}
            raise REFUSALS.get(absorbed, RequestError)(f"{absorbed}: task {holder} holds the key or id, and is {status}", details)
        return request_id if exists else None

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
        with self._ended:
            if self._listen and self._listener is None:
                self._listener = Listener(self._connect, Database(self._connect, self._guard), logging.getLogger("pawl"))
                self._listener.subscribe("pawl_finished", self._announced)
                self._listener.start()

    def _announced(self) -> None:
        with self._ended:
            self._news += 1
            self._ended.notify_all()

    def _idle(self) -> float:
        return self._proven_poll if self._listener and self._listener.proven else self._poll


def _id(task: Submitted | UUID | str) -> UUID:
    if isinstance(task, Submitted):
        return task.task_id
    try:
        return task if isinstance(task, UUID) else UUID(task)
    except ValueError:
        raise UnknownTask(f"{task!r} is no task's id") from None


def _made(task: Submitted | UUID | str) -> bool:
    """Whether a request is known to have made its task."""
    return isinstance(task, Submitted) and task.msg_id is None


def _early(task: Submitted | UUID | str) -> float:
    """Seconds until the first look at a request that has just been submitted: before that there is nothing to see."""
    return min(task.submitted_at + LOOK_AGAIN[0] - time.monotonic(), LOOK_AGAIN[0]) if isinstance(task, Submitted) else 0.0


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
