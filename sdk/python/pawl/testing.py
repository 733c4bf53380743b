"""Runs a handler without a database, through the same decoding and encoding as a worker does.

    outcome = run_handler(worker, "shop.charge", {"order_id": "S-1"}, dependencies={"price": {"cents": 990}})
    assert outcome.status == "complete" and outcome.result == {"charged": 990}
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Coroutine
from uuid import uuid4

from .codec import encode, parse
from .delivery import Delivery, Outcome
from .errors import ConfigError, Interrupted
from .handlers import Handler
from .task import NO_INPUT
from .worker import Worker


@dataclass(frozen=True)
class HandlerOutcome:
    """What would have been reported. status: complete, failed or rejected."""

    status: str
    result: Any = None  # JSON values
    error: dict[str, Any] | None = None  # {type, message, retryable, retry_after?}
    exception: BaseException | None = None  # what the handler raised
    completed_in_transaction: bool = False  # by step.complete_in, which does not touch its connection here


class _TestDelivery(Delivery):
    __slots__ = ("completion",)
    completion: str | None

    def record_completion(self, text: str) -> bool:
        self.completion = text
        return True


def run_handler(
    worker_or_function: Worker | Callable[..., Any],
    name: str | None = None,
    input: Any = NO_INPUT,  # noqa: A002
    *,
    dependencies: dict[str, Any] | None = None,
    config: Any = None,
    attempt: int = 1,
    delivery: int = 1,
    token: str = "test-token",
    cause: Interrupted | None = None,
    **fields: Any,
) -> HandlerOutcome:
    """Runs a worker's handler by its name, or any function as a handler, and returns what would have been reported.

    An asyncio handler runs in an event loop of its own, also when the caller's is running: what it uses must not belong to
    another loop.

    cause: the work is no longer wanted from the start, as pawl.Cancelled() says. fields: others of the message (task_id,
    step, index, correlation_id, headers).
    """
    handler = _find(worker_or_function, name)
    body = {
        "msg_id": 1, "read_ct": delivery, "task_id": str(uuid4()), "step": "run", "attempt": attempt, "handler": handler.name,
        "input": input, "dependencies": dependencies or {}, "config": config, "token": token, "lease_ms": 30000,
        **fields,
    }  # fmt: skip
    ran = _TestDelivery(parse(encode(body)), "test_queue", "test")
    ran.completion, ran.cause = None, cause
    result, problem = None, None
    try:
        output = handler.call(ran)
        result = _run(handler.run_async(ran, output)) if inspect.isawaitable(output) else handler.finish(ran, output)
    except (Exception, asyncio.CancelledError) as raised:
        problem = raised
    if ran.completion is not None and problem is None:
        return HandlerOutcome("complete", parse(ran.completion), completed_in_transaction=True)
    outcome = Outcome(ran, result, problem)
    if outcome.error is not None:
        return HandlerOutcome(outcome.status, None, outcome.error, problem)
    return HandlerOutcome("complete", None if result is None else parse(result))


def _run(running: Coroutine[Any, Any, str | None]) -> str | None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(running)
    with ThreadPoolExecutor(1) as thread:  # in a test of asyncio, whose loop waits meanwhile
        return thread.submit(contextvars.copy_context().run, asyncio.run, running).result()


def _find(worker_or_function: Worker | Callable[..., Any], name: str | None) -> Handler:
    if not isinstance(worker_or_function, Worker):
        return Handler(name or getattr(worker_or_function, "__name__", "handler"), worker_or_function, False)
    handlers = worker_or_function.handlers
    if name not in handlers:
        raise ConfigError(f"the worker has no handler {name!r}; it has {', '.join(sorted(handlers)) or 'none'}")
    return handlers[name]
