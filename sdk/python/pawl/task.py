"""Requests for tasks, and what is known of a task."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from .codec import encode
from .errors import InvalidBody, InvalidRequest
from .names import check_step_queue

MAX_KEY = 255  # bytes
NO_INPUT: Any = {}  # what is sent when no input is given: None is null. Nobody changes it


def new_request_id() -> UUID:
    """An id for a request, a UUIDv7: it becomes the task's id, so that a request repeated with it meets its own task."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 7 << 76
    return UUID(int=value & ~(0x3 << 62) | 2 << 62)


@dataclass(kw_only=True)
class Request:
    """Asks for a task: of a template ("namespace/name" or "namespace/name@version"), or of one step when it names a handler."""

    template: str | None = None
    handler: str | None = None
    input: Any = field(default_factory=dict)
    namespace: str | None = None  # with handler; default: "default"
    queue: str | None = None  # with handler; default: the namespace's
    key: str | None = None  # identifies the task among those of its template: 1 to 255 bytes
    on_duplicate: str | None = None  # "attach" (default): the answer is the task that exists; "reject": an error
    requester: str | None = None
    run_at: datetime | None = None  # not before this time
    reply_to: str | None = None
    correlation_id: str | None = None
    tags: dict[str, str] | None = None
    request_id: UUID | str | None = None  # becomes the task's id; default: a new one
    traceparent: str | None = None  # of the W3C trace that the task is to belong to

    def __post_init__(self) -> None:
        # An id that the caller gives may be another request's, too.
        self.gives_id = self.request_id is not None
        try:
            self.request_id = UUID(str(self.request_id)) if self.gives_id else new_request_id()
        except ValueError:
            raise InvalidRequest(f"request_id {self.request_id!r} is no UUID") from None

    def body(self) -> str:
        """The message's JSON text. Raises InvalidRequest for what the engine would refuse whatever the database holds."""
        self._check()
        body: dict[str, Any] = {"v": 1, "request_id": str(self.request_id), "input": self.input}
        for name in ("template", "handler", "namespace", "queue", "key", "on_duplicate", "requester", "reply_to", "correlation_id", "tags"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if self.run_at is not None:
            body["run_at"] = self.run_at.isoformat()
        try:
            return encode(body)
        except InvalidBody as problem:
            raise InvalidRequest(f"writing the request: {problem}") from None

    def headers(self) -> str | None:
        return encode({"traceparent": self.traceparent}) if self.traceparent else None

    def _check(self) -> None:
        if bool(self.template) == bool(self.handler):
            raise InvalidRequest('name a template ("namespace/name") or a handler, one of them')
        if self.template and (self.namespace or self.queue):
            raise InvalidRequest("namespace and queue belong to a handler: a template has its own")
        if self.queue is not None:
            check_step_queue(self.queue)
        if self.reply_to is not None:
            check_step_queue(self.reply_to)
        if self.key is not None and not 1 <= len(self.key.encode("utf-8", "replace")) <= MAX_KEY:
            raise InvalidRequest(f"the key has {len(self.key.encode('utf-8', 'replace'))} bytes, not 1 to {MAX_KEY}: send a digest")
        if self.on_duplicate not in (None, "attach", "reject"):
            raise InvalidRequest(f'on_duplicate is {self.on_duplicate!r}: "attach" or "reject"')
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise InvalidRequest("run_at has no time zone: datetime.now(timezone.utc) + timedelta(hours=1)")


class RequestOptions(TypedDict, total=False):
    """Fields of a Request, as the client's submit takes them."""

    key: str | None
    on_duplicate: str | None
    requester: str | None
    run_at: datetime | None
    reply_to: str | None
    correlation_id: str | None
    tags: dict[str, str] | None
    request_id: UUID | str | None
    traceparent: str | None


class HandlerOptions(RequestOptions, total=False):
    """Fields of a Request, as the client's enqueue takes them."""

    namespace: str | None
    queue: str | None


@dataclass(frozen=True)
class Submitted:
    """A request on its way. task_id is its request's id, and the task's unless the request attaches to one that exists."""

    task_id: UUID
    msg_id: int | None  # of its message in the request queue; None: there was none, it is a task already
    gives_id: bool = False  # the caller chose the id
    submitted_at: float = field(default=-math.inf, compare=False, repr=False)  # of time.monotonic(); -inf: the caller's transaction decides


@dataclass(frozen=True)
class Task:
    """What is known of a task. status: pending, running, completed, failed, cancelled or timed_out."""

    task_id: UUID
    namespace: str
    template: str
    version: str
    state: str
    status: str
    key: str | None
    correlation_id: str | None
    input: Any
    result: Any
    error: dict[str, Any] | None
    requested_at: datetime
    finalized_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether the task is in a final state."""
        return self.finalized_at is not None
