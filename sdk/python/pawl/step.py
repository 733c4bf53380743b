"""What a handler gets beside its input."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import UUID

import psycopg

from .codec import encode
from .database import at_once
from .decode import Mismatch, decode
from .errors import INVALID_INPUT, INVALID_RESULT, NO_TRANSACTION, Interrupted, InvalidBody, LeaseLost, Permanent

if TYPE_CHECKING:
    from .delivery import Delivery

T = TypeVar("T")


class Step:
    """One delivery of one attempt of a step."""

    def __init__(self, delivery: Delivery, refuse_unknown: bool = False) -> None:
        self._delivery, self._refuse_unknown = delivery, refuse_unknown
        body = delivery.body
        self.task_id = UUID(body["task_id"])
        #: Name of the step in its template ("run" in a task that names only a handler), and its index when it is mapped.
        self.name: str = body["step"]
        self.index: int = body.get("index") or 0
        #: Attempts count from 1 and end with a result. The delivery counts how often this attempt reached a worker: above
        #: 1, an earlier worker died or was too slow to extend its lease, and may have done part of the work.
        self.attempt: int = body["attempt"]
        self.delivery: int = delivery.read_ct
        self.handler: str = body["handler"]
        self.queue: str = delivery.queue
        #: The same for all attempts and deliveries of the step: put it into outgoing idempotency headers.
        self.token: str = body.get("token") or ""
        self.correlation_id: str | None = body.get("correlation_id")
        self.headers: dict[str, Any] = body.get("headers") or {}

    @property
    def input(self) -> Any:
        """The task's input as JSON values, the same for all of its steps."""
        return self._delivery.body.get("input")

    @property
    def dependencies(self) -> dict[str, Any]:
        """The results of the needed steps by name, as JSON values. Skipped steps have none."""
        return self._delivery.body.get("dependencies") or {}

    @property
    def cancelled(self) -> threading.Event:
        """Set when the work is no longer wanted; ``cause`` says why. Handlers of asyncio are cancelled as well."""
        return self._delivery.cancelled

    @property
    def cause(self) -> Interrupted | None:
        """Why the work is no longer wanted: Cancelled, LeaseLost, TimedOut or Stopping; None while it is wanted."""
        return self._delivery.cause

    @property
    def traceparent(self) -> str | None:
        """The task's W3C trace context, when its request carried one."""
        return self.headers.get("traceparent")

    def check(self) -> None:
        """Raises ``cause`` when the work is no longer wanted. For long loops."""
        if self.cause is not None:
            raise self.cause

    @overload
    def dependency(self, name: str) -> Any: ...
    @overload
    def dependency(self, name: str, kind: type[T]) -> T: ...
    @overload
    def dependency(self, name: str, kind: Any) -> Any: ...

    def dependency(self, name: str, kind: Any = Any) -> Any:
        """The result of a needed step, decoded. What does not fit fails the step for good."""
        if name not in self.dependencies:
            raise Permanent(f"reading dependency {name!r}: step {self.name!r} needs no such step, or it was skipped", type=INVALID_INPUT)
        return self._decode(self.dependencies[name], kind, f"dependency {name!r}", self._refuse_unknown)

    @overload
    def config(self) -> Any: ...
    @overload
    def config(self, kind: type[T]) -> T | None: ...
    @overload
    def config(self, kind: Any) -> Any: ...

    def config(self, kind: Any = Any) -> Any:
        """The template's config for this step, decoded; None without one. Unknown fields are refused."""
        value = self._delivery.body.get("config")
        return None if value is None else self._decode(value, kind, f"config of step {self.name!r}", True)

    def _decode(self, value: Any, kind: Any, what: str, refuse_unknown: bool) -> Any:
        try:
            return decode(value, kind, refuse_unknown=refuse_unknown)
        except Mismatch as problem:
            raise Permanent(f"reading {what}: {problem}", type=INVALID_INPUT) from None

    def complete_in(self, connection: Any, output: Any = None) -> Any:
        """Completes the step as part of the caller's transaction, which must be in the same database.

        What else the transaction wrote and the step's completion are committed together or not at all: exactly once.
        Call it once, last, then commit and return; what the handler returns is not used then. With a
        psycopg.AsyncConnection it is awaited.

        Raises LeaseLost when the step is somebody else's by now, or has ended: let it pass, and the transaction rolls
        back; Permanent, with type no_transaction, when the connection is in autocommit mode and no transaction is open. When the transaction is not committed and the handler returns all the same, the attempt fails with type
        transaction_not_committed.
        """
        if problem := at_once(connection):
            raise Permanent(f"completing the step in a transaction: {problem}", type=NO_TRANSACTION)
        try:
            text = encode(output)
        except InvalidBody as problem:
            raise Permanent(f"writing result: {problem}", type=INVALID_RESULT) from None
        if self._delivery.record_completion(text):  # of a test
            return _nothing() if isinstance(connection, psycopg.AsyncConnection) else None
        self._delivery.in_transaction = True  # before the message is locked: a beat that cannot see it means nothing
        arguments = self._delivery.queue, f"[{self._delivery.report_complete(text)}]", self._delivery.worker
        if isinstance(connection, psycopg.AsyncConnection):
            return self._complete_async(connection, arguments)
        with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.execute(_REPORT, arguments)
            _must_be_accepted(cursor.fetchone())

    async def _complete_async(self, connection: psycopg.AsyncConnection[Any], arguments: tuple[str, ...]) -> None:
        async with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            await cursor.execute(_REPORT, arguments)
            _must_be_accepted(await cursor.fetchone())


_REPORT = """select coalesce((r.report->>'accepted')::boolean, false)
from json_array_elements(pawl.report_steps(%s::text, %s::text::jsonb, %s::text)) r(report)"""


def _must_be_accepted(row: Any) -> None:
    if row is None or not row[0]:
        raise LeaseLost


async def _nothing() -> None:
    pass
