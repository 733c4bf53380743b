"""A step that this worker has claimed, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from typing import Any

from .codec import clean
from .errors import NOT_COMMITTED, Cancelled, Failed, Interrupted, Permanent, Rejected, RetryAfter, Stopping, TimedOut

MAX_ERROR_TEXT = 8 << 10  # bytes of an error's text in a result
MAX_ERROR_TYPE = 100


class Delivery:
    """A claimed step. ``body`` is what pawl.claim_steps gave; fields that are not known are a newer engine's, and harmless."""

    __slots__ = (
        "body", "queue", "worker", "msg_id", "read_ct", "lease", "deadline", "cause", "in_transaction", "_cancelled", "_stop",
        "beat_at", "lease_from", "ended", "superseded",
    )  # fmt: skip

    def __init__(self, body: dict[str, Any], queue: str, worker: str) -> None:
        self.body, self.queue, self.worker = body, queue, worker
        self.msg_id: int = body["msg_id"]
        self.read_ct: int = body["read_ct"]  # with msg_id the fence of the lease
        self.lease: float = (body.get("lease_ms") or 30000) / 1000
        self.deadline = 0.0  # when its timeout is over; 0: it has none
        self.cause: Interrupted | None = None
        self.in_transaction = False  # complete_in was called: the message may be locked or gone
        self._cancelled: threading.Event | None = None
        self._stop: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        # Guarded by the lane's lock.
        self.beat_at = 0.0  # when the lease is to be extended; 0: no longer
        self.lease_from = 0.0  # when it was surely ours last
        self.ended = False  # the handler has returned
        self.superseded = False  # a later delivery of the same message has come to this worker

    @property
    def fence(self) -> dict[str, int]:
        return {"msg_id": self.msg_id, "read_ct": self.read_ct}

    @property
    def timeout(self) -> float:
        """Seconds of the attempt's timeout as the engine put it into the message's headers; 0: none."""
        headers = self.body.get("headers")
        milliseconds = headers.get("timeout_ms") if isinstance(headers, dict) else None
        return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else 0.0

    @property
    def claims(self) -> bool:
        """Whether the step may have an entity claim, so that its report moves a row of the user's."""
        headers = self.body.get("headers")
        return isinstance(headers, dict) and headers.get("claim") is True

    @property
    def cancelled(self) -> threading.Event:
        if self._cancelled is None:
            with _EVENTS:
                if self._cancelled is None:
                    event = threading.Event()
                    if self.cause is not None:
                        event.set()
                    self._cancelled = event
        return self._cancelled

    def runs_as(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        """Notes the asyncio task that is to be cancelled with the step. Called by its loop's thread."""
        self._stop = (loop, task)
        if self.cause is not None:
            task.cancel()

    def cancel(self, cause: Interrupted) -> None:
        """Tells the handler that its work is no longer wanted. The first cause stays."""
        with _EVENTS:
            if self.cause is not None or self.ended:
                return
            self.cause = cause
            if self._cancelled is not None:
                self._cancelled.set()
        if self._stop is not None:
            loop, task = self._stop
            loop.call_soon_threadsafe(task.cancel)

    def record_completion(self, text: str) -> bool:
        """Whether complete_in is not to touch a database; tests override it."""
        return False

    def report_complete(self, text: str) -> str:
        return f'{{"msg_id":{self.msg_id},"read_ct":{self.read_ct},"status":"complete","result":{text}}}'

    def report_failure(self, status: str, error: dict[str, Any]) -> str:
        return json.dumps({**self.fence, "status": status, "error": error})


_EVENTS = threading.Lock()  # orders the making of a delivery's event and its cancelling


class Outcome:
    """A delivery whose handler has returned: the report on it, or that it is given back."""

    __slots__ = ("delivery", "report", "status", "error", "give_back", "replaced", "tries", "retry_at")

    def __init__(self, delivery: Delivery, result: str | None, problem: BaseException | None) -> None:
        self.delivery, self.error, self.give_back = delivery, None, False
        self.replaced = False  # by a failure: the database refused the result for its content
        self.tries, self.retry_at = 0, 0.0  # of reporting it alone
        if problem is None and delivery.in_transaction:
            # When the transaction has committed the message is gone, and this report with it. It counts only otherwise.
            problem = Failed("the handler returned, but the transaction given to complete_in was not committed", type=NOT_COMMITTED)
        if problem is None:
            self.status, self.report = "complete", delivery.report_complete(result or "null")
            return
        self.give_back = isinstance(delivery.cause, Stopping)
        self.fail(*failure(problem, delivery.cause))

    def fail(self, status: str, error: dict[str, Any]) -> None:
        self.status, self.error, self.report = status, error, self.delivery.report_failure(status, error)


def failure(problem: BaseException, cause: Interrupted | None) -> tuple[str, dict[str, Any]]:
    """Status and error to report for an exception. cause is why the work was no longer wanted, None when it was.

    It raises nothing: what cannot be reported would keep its slot and its lease for ever.
    """
    try:
        return _described(problem, cause)
    except Exception:  # a handler's own exception class may fail at each question
        text = clean(f"the handler raised {type(problem).__name__}, which cannot be described", MAX_ERROR_TEXT)
        error = {"type": "error", "message": text, "retryable": not isinstance(problem, (Permanent, Rejected))}
        return "rejected" if isinstance(problem, Rejected) else "failed", error


def _described(problem: BaseException, cause: Interrupted | None) -> tuple[str, dict[str, Any]]:
    retryable, after, status = True, 0.0, "failed"
    if isinstance(problem, Failed):
        retryable, after = bool(problem.retryable), _seconds(problem.after)
        status = "rejected" if problem.rejected else "failed"
    error: dict[str, Any] = {"type": _type_of(problem, cause), "message": clean(_text(problem, cause), MAX_ERROR_TEXT), "retryable": retryable}
    if retryable and 0 < after < 1e9:
        error["retry_after"] = after
    return status, error


def _seconds(after: Any) -> float:
    """A pause as a class or its maker gave it; 0 for what is none."""
    try:
        return after.total_seconds() if isinstance(after, timedelta) else float(after or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _text(problem: BaseException, cause: Interrupted | None) -> str:
    try:
        text = str(problem)
    except Exception:  # a handler's own exception class may fail at it
        text = ""
    if not text and cause is not None:
        return str(cause)
    return text or type(problem).__name__


_SILENT = (Failed, Permanent, Rejected, RetryAfter)


def _type_of(problem: BaseException, cause: Interrupted | None) -> str:
    seen: set[int] = set()  # of a chain that leads back to itself, nothing is learned the second time
    while True:
        if isinstance(problem, Failed) and problem.type:
            return clean(str(problem.type), MAX_ERROR_TYPE)
        if type(problem) not in _SILENT:
            break
        seen.add(id(problem))  # says nothing itself: what it was raised from may
        if problem.__cause__ is None or id(problem.__cause__) in seen:
            return "error"
        problem = problem.__cause__
    if isinstance(cause, Cancelled):
        return "cancelled"
    if isinstance(cause, TimedOut) and isinstance(problem, (Interrupted, TimeoutError, asyncio.CancelledError)):
        return "timeout"
    return clean(type(problem).__name__, MAX_ERROR_TYPE)
