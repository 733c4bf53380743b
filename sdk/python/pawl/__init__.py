"""Workers and producers for Pawl: durable workflows on one Postgres with PGMQ.

    worker = pawl.Worker("shop_queue")

    @worker.handler("shop.charge")
    def charge(order: Order, step: pawl.Step) -> Receipt: ...

A step's message is leased: the worker extends the lease while the handler runs, and when the worker dies the message comes
back after it. So a handler may run more than once. ``step.token`` is the same every time, for services that take an
idempotency key; a handler whose effects are in the same database uses ``step.complete_in``, and they happen once.

An exception has the step tried again, as often as its template says; Permanent, RetryAfter and Rejected say otherwise.
"""

import sys

try:
    import psycopg as _psycopg  # noqa: F401
except ModuleNotFoundError as _problem:
    if _problem.name != "psycopg":
        raise
    raise ModuleNotFoundError(
        f"pawl needs psycopg 3, and {sys.executable} does not have it: {sys.executable} -m pip install 'psycopg[binary]', "
        "or Debian's python3-psycopg with /usr/bin/python3", name="psycopg",
    ) from None  # fmt: skip
except ImportError as _problem:  # of psycopg itself, in a slim image
    raise ImportError(
        f"pawl needs psycopg 3, which {sys.executable} has without the library of Postgres' clients: install pawl[binary], "
        f"that is {sys.executable} -m pip install 'psycopg[binary]', or the system's libpq (Debian: libpq5). psycopg says: {_problem}",
        name="psycopg",
    ) from None  # fmt: skip

from .client import Client
from .database import find_url
from .errors import (
    Cancelled,
    ClientError,
    ConfigError,
    Failed,
    Interrupted,
    InvalidBody,
    InvalidRequest,
    KeyRequired,
    LeaseLost,
    PawlError,
    Permanent,
    Rejected,
    RequestError,
    ResultExpired,
    RetryAfter,
    Stopping,
    TaskAlreadyCompleted,
    TaskAlreadyExists,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    TaskInputMismatch,
    TaskTimedOut,
    TimedOut,
    UnknownTask,
    WaitTimeout,
)
from .step import Step
from .task import Request, Submitted, Task, new_request_id
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "Cancelled", "Client", "ClientError", "ConfigError", "Failed", "Interrupted", "InvalidBody", "InvalidRequest", "KeyRequired", "LeaseLost",
    "PawlError", "Permanent", "Rejected", "Request", "RequestError", "ResultExpired", "RetryAfter", "Step", "Stopping", "Submitted", "Task",
    "TaskAlreadyCompleted", "TaskAlreadyExists", "TaskCancelled", "TaskEnded", "TaskFailed", "TaskInputMismatch", "TaskTimedOut",
    "TimedOut", "UnknownTask", "WaitTimeout", "Worker", "find_url", "new_request_id",
]  # fmt: skip
