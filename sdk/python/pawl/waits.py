"""Waiting for decisions and for the ends of tasks, for all threads of a client together."""

from __future__ import annotations

import math
import threading
import time
from typing import Any, Callable, Iterable
from uuid import UUID

import psycopg

from .codec import parse
from .database import CLOSED
from .errors import ENDS, REFUSALS, ClientError, InvalidRequest, KeyRequired, RequestError, ResultExpired, UnknownTask, WaitTimeout
from .lane import LOOK_AGAIN
from .task import Submitted, Task

_COLUMNS = """t.task_id, t.namespace, t.template, t.version, t.state::text, pawl.public_status(t.state), t.key, t.correlation_id,
  t.input::text, t.result::text, t.error::text, t.requested_at, t.finalized_at"""
TASK = f"select {_COLUMNS} from pawl.tasks t where t.task_id = %s"

# Of those that have not ended nothing is read but that they are there.
_ENDED = f"""select w.id, t.task_id is not null, f.* from unnest(%s::uuid[]) w(id) left join pawl.tasks t on t.task_id = w.id
left join lateral (select {_COLUMNS} from (select t.*) t where t.finalized_at is not null) f on true"""

# What became of requests. A request's message goes away in the transaction that decides it, which also makes its task, or leaves
# a trace: an absorbed row when a task holds its key or id, a dead letter when it is invalid. The message is asked for by its id,
# without "exists": that may become a hash of the whole queue, its dead rows passed.
_DECISIONS = """select coalesce((select true from pgmq.q_orchestration_task_requests q where q.msg_id = r.msg_id limit 1), false),
  t.task_id is not null,
  a.reason, a.task_id, a.message->>'key', pawl.public_status(h.state), h.finalized_at,
  case when a.reason = 'TaskAlreadyCompleted' then h.result::text end, d.reason
from unnest(%s::uuid[], %s::bigint[]) with ordinality r(request_id, msg_id, n)
left join pawl.tasks t on t.task_id = r.request_id
left join lateral (select x.reason, x.task_id, x.message from pawl.absorbed x
  where x.queue = 'orchestration_task_requests' and x.message->>'request_id' = r.request_id::text
    and x.msg_id = coalesce(r.msg_id, x.msg_id) order by x.absorbed_id desc limit 1) a on true
left join pawl.tasks h on h.task_id = a.task_id
left join lateral (select x.reason from pawl.dead_letters x where x.status = 'open'
    and x.queue = 'orchestration_task_requests' and x.message->>'request_id' = r.request_id::text
    and x.msg_id = coalesce(r.msg_id, x.msg_id) order by x.dead_letter_id desc limit 1) d on true
order by r.n"""

_UNDECIDED_POLL = 0.5  # seconds: decisions are not announced, ends are
_LONGEST_SLEEP = 3600.0  # seconds

Ask = Callable[[str, Any], "list[tuple[Any, ...]]"]


class Wait:
    """Somebody who waits: for a task's end, or for a decision only. Others than its thread change it while it is in Waits."""

    def __init__(self, task: Submitted | UUID | str, timeout: float | None, decision_only: bool = False) -> None:
        self.task_id, self.decision_only = id_of(task), decision_only
        self.request: Submitted | UUID | str | None = None if is_made(task) else task  # until it is decided
        self.attached = False  # to a task that was there before
        self.timeout = timeout
        now = time.monotonic()
        self.until = math.inf if timeout is None else now + timeout
        early = task.submitted_at + LOOK_AGAIN[0] if isinstance(task, Submitted) else now  # before that there is nothing to see
        self.first_look = min(max(early, now), now + LOOK_AGAIN[0], self.until)
        self.ended = threading.Event()
        self.outcome: tuple[Any, BaseException | None] = None, None

    def end(self, answer: Any = None, problem: BaseException | None = None) -> None:
        self.outcome = answer, problem
        self.ended.set()

    def late(self) -> WaitTimeout:
        if self.decision_only:
            return WaitTimeout(f"no orchestrator has taken request {self.task_id} within {self.timeout:g} s; it waits in the queue")
        return WaitTimeout(f"task {self.task_id} has not ended within {self.timeout:g} s; it goes on")


class Waits:
    """A thread looks for all who wait: after each announcement, and without any after a while. One statement a look, two while
    requests are undecided, however many wait."""

    def __init__(self, ask: Ask, outlasts: Callable[[psycopg.Error], bool], idle: Callable[[], float]) -> None:
        self._ask, self._outlasts, self._idle = ask, outlasts, idle
        self._changed = threading.Condition()
        # What follows is guarded by _changed.
        self._all: set[Wait] = set()
        self._due = math.inf  # when the next look is
        self._since = 0.0  # what LOOK_AGAIN counts from; 0: the next look
        self._thread: threading.Thread | None = None
        self._closed = False

    def wait(self, wait: Wait) -> Any:
        """Returns what was waited for. Raises what it has ended with."""
        try:
            with self._changed:
                if self._closed:
                    raise ClientError(f"waiting: {CLOSED}")
                if not self._all:
                    self._due = math.inf  # what was due was for those who have gone
                self._all.add(wait)
                self._look_at(wait.first_look)
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="pawl-waits", daemon=True)
                    thread.start()
                    self._thread = thread
            wait.ended.wait()
        finally:
            with self._changed:
                self._all.discard(wait)
        answer, problem = wait.outcome
        if problem is not None:
            raise problem
        return answer

    def announced(self) -> None:
        """Tasks have ended."""
        with self._changed:
            self._look_at(0.0)

    def close(self) -> None:
        """Ends all waits."""
        with self._changed:
            self._closed = True
            _end_all(self._all, ClientError(f"waiting: {CLOSED}"))
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _look_at(self, due: float) -> None:
        """Makes a look due, and a series of others after it. The caller holds _changed."""
        self._due, self._since = min(self._due, due), 0.0
        self._changed.notify_all()

    def _run(self) -> None:
        while waits := self._next():
            began, outage, again = time.monotonic(), None, False
            try:
                again = self._look(waits)
            except psycopg.Error as problem:
                outage = problem
                if not self._outlasts(problem):
                    _end_all(waits, problem)
            except Exception as problem:
                _end_all(waits, problem)
            for wait in waits:
                if wait.until <= began and not wait.ended.is_set() and not again:
                    late = wait.late()
                    late.__cause__ = outage
                    wait.end(problem=late)
            self._plan(began, [wait for wait in waits if not wait.ended.is_set()], len(waits), again)

    def _next(self) -> list[Wait]:
        """Those who wait, when a look is due; nobody when the client is closed."""
        with self._changed:
            while not self._closed:
                waits = [wait for wait in self._all if not wait.ended.is_set()]
                due = min(self._due, min(wait.until for wait in waits)) if waits else math.inf
                if (pause := due - time.monotonic()) <= 0:
                    self._due = math.inf  # what happens during the look makes another one due
                    return waits
                self._changed.wait(min(pause, _LONGEST_SLEEP))
        return []

    def _plan(self, began: float, left: list[Wait], looked: int, again: bool) -> None:
        if not left:
            return  # who has come meanwhile has made a look due
        with self._changed:
            if self._since == 0.0 or len(left) < looked:
                self._since = began
            now = time.monotonic()
            due = next((self._since + after for after in LOOK_AGAIN if self._since + after > now), now + self._idle())
            if any(wait.request is not None for wait in left):
                due = min(due, now + _UNDECIDED_POLL)
            self._due = min(self._due, 0.0 if again else due)

    def _look(self, waits: list[Wait]) -> bool:
        """Looks for all. Returns whether another look is due at once: requests have turned out to be others' tasks."""
        again, undecided = False, []
        ids = {wait.task_id for wait in waits if not wait.decision_only}
        rows = {row[0]: row[1:] for row in self._ask(_ENDED, (list(ids),))} if ids else {}
        for wait in waits:
            exists, *columns = rows.get(wait.task_id, (False, None))
            # An id that the caller chose may be another request's.
            if wait.request is not None and (not exists or isinstance(wait.request, Submitted) and wait.request.gives_id):
                undecided.append((wait, wait.request))
            elif not exists:
                what = f"task {wait.task_id}, which holds the key, has completed" if wait.attached else f"task {wait.task_id} has ended"
                wait.end(problem=ResultExpired(f"{what}, and was removed when its retention was over"))
            elif columns[0] is not None:
                found = task_of(columns)
                wait.end(found, None if found.status == "completed" else ENDS[found.status](found))
        if not undecided:
            return False
        arguments = [wait.task_id for wait, _ in undecided], [getattr(request, "msg_id", None) for _, request in undecided]
        for (wait, _), row in zip(undecided, self._ask(_DECISIONS, arguments)):
            try:
                holder = _decision(wait.task_id, row)
            except RequestError as problem:
                wait.end(problem=problem)
                continue
            if holder is not None and wait.decision_only:
                wait.end(holder)
            elif holder is not None:
                wait.request, wait.attached, wait.task_id, again = None, holder != wait.task_id, holder, True
        return again


def _end_all(waits: Iterable[Wait], problem: BaseException) -> None:
    for wait in waits:
        if not wait.ended.is_set():
            wait.end(problem=problem)


def _decision(request_id: UUID, row: tuple[Any, ...]) -> UUID | None:
    """The task that a request has made or met; None while it is not decided. Raises what it was refused with."""
    pending, exists, absorbed, holder, key, status, completed_at, result, dead = row
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


def task_of(columns: Any) -> Task:
    """The task that TASK gives."""
    *head, given, result, error, requested_at, finalized_at = columns
    given, result, error = (None if text is None else parse(text) for text in (given, result, error))
    return Task(*head, given, result, error, requested_at, finalized_at)


def id_of(task: Submitted | UUID | str) -> UUID:
    if isinstance(task, Submitted):
        return task.task_id
    try:
        return task if isinstance(task, UUID) else UUID(task)
    except ValueError:
        raise UnknownTask(f"{task!r} is no task's id") from None


def is_made(task: Submitted | UUID | str) -> bool:
    """Whether a request is known to have made its task."""
    return isinstance(task, Submitted) and task.msg_id is None
