"""What handlers raise, why a step's work may no longer be wanted, and what the client raises."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .task import Task

# Types of failures that the worker itself finds.
INVALID_INPUT = "invalid_input"
INVALID_RESULT = "invalid_result"
UNKNOWN_HANDLER = "unknown_handler"
NOT_COMMITTED = "transaction_not_committed"
NO_TRANSACTION = "no_transaction"


class PawlError(Exception):
    """The root of this package's errors."""


class Failed(PawlError):
    """Raised by a handler: the attempt has failed, and the step is tried again as often as its template says.

    Any other exception means the same. This one names its ``type``: a short word by which failures are counted and told
    apart. Without it the type is the class of the exception that it was raised from, else "error".
    """

    retryable = True
    rejected = False
    # Of the class, so that a subclass whose __init__ does not call this one has them, too.
    type: str = ""
    after: float | timedelta | None = None  # a pause before the next attempt, seconds

    def __init__(self, message: str = "", *, type: str = "") -> None:  # noqa: A002
        super().__init__(message)
        if type:
            self.type = type


class Permanent(Failed):
    """Raised by a handler: trying again will not cure it, the step fails at once."""

    retryable = False


class Rejected(Failed):
    """Raised by a handler: it will not do this. The step fails at once, with status rejected."""

    retryable = False
    rejected = True


class RetryAfter(Failed):
    """Raised by a handler: try again, but not before a time has passed (seconds, or a timedelta)."""

    def __init__(self, message: str = "", after: float | timedelta = 0, *, type: str = "") -> None:  # noqa: A002
        super().__init__(message, type=type)
        self.after = max(after.total_seconds() if isinstance(after, timedelta) else float(after), 0.0)


class Interrupted(PawlError):
    """Why the work on a step is no longer wanted: ``step.cause`` is one of its subclasses."""


class Cancelled(Interrupted):
    """The task or the step was ended by somebody else; the result will not count."""

    def __init__(self) -> None:
        super().__init__("the step was cancelled")


class LeaseLost(Interrupted):
    """The lease could not be extended in time; another worker has the step now or soon."""

    def __init__(self) -> None:
        super().__init__("the lease of the step is lost")


class TimedOut(Interrupted):
    """The step's timeout is over."""

    def __init__(self) -> None:
        super().__init__("the step's timeout is over")


class Stopping(Interrupted):
    """The worker stops and the grace period is over; an exception raised now hands the step back."""

    def __init__(self) -> None:
        super().__init__("the worker stops")


class ConfigError(PawlError):
    """A worker or client is set up wrongly; the text says what to write instead."""


class InvalidBody(PawlError):
    """JSON that the database would refuse: NUL characters, half surrogate pairs, NaN, too large, too deep."""


class ClientError(PawlError):
    """The root of what the client raises about tasks."""


class UnknownTask(ClientError):
    """There is no such task."""


class WaitTimeout(ClientError, TimeoutError):
    """The task has not ended within the time that wait was given. The task goes on."""


class ResultExpired(ClientError):
    """The task, or the one that holds the request's key, has ended, and was removed when its retention was over."""


class RequestError(ClientError):
    """A request was refused. ``details`` is the engine's answer."""

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}

    @property
    def existing_execution_id(self) -> str | None:
        """The id of the task that exists, when that is why."""
        return self.details.get("existing_execution_id")


class InvalidRequest(RequestError):
    """The request cannot be fulfilled. kind: InvalidRequest, UnknownTemplate, InvalidInput, KeyRequired, …"""

    def __init__(self, message: str, kind: str = "InvalidRequest") -> None:
        super().__init__(message, {"error": kind, "message": message})
        self.kind = kind


class KeyRequired(InvalidRequest):
    """The template wants a key with each request."""


class TaskAlreadyExists(RequestError):
    """A task with this key is pending or running, and the request said ``on_duplicate="reject"``."""


class TaskAlreadyCompleted(RequestError):
    """A task with this key has completed, and the request said ``on_duplicate="reject"``."""


class TaskInputMismatch(RequestError):
    """A task with this key, or this request id, exists with another input."""


REFUSALS: dict[str, type[RequestError]] = {
    refusal.__name__: refusal for refusal in (TaskAlreadyExists, TaskAlreadyCompleted, TaskInputMismatch)
}


class TaskEnded(ClientError):
    """A task that was waited for has ended, and not as completed. ``task`` is what is known of it."""

    def __init__(self, task: Task) -> None:
        error = task.error or {}
        parts = [f"task {task.task_id} is {task.status}", f"step {error['step']}" if error.get("step") else ""]
        parts += [str(error.get("type") or ""), str(error.get("message") or "")]
        super().__init__(": ".join(part for part in parts if part))
        self.task = task
        #: Whose failure it was, if one step's.
        self.step: str | None = error.get("step")


class TaskFailed(TaskEnded):
    """The task has failed."""


class TaskCancelled(TaskEnded):
    """The task was cancelled."""


class TaskTimedOut(TaskEnded):
    """The task's timeout is over."""


ENDS: dict[str, type[TaskEnded]] = {"failed": TaskFailed, "cancelled": TaskCancelled, "timed_out": TaskTimedOut}
