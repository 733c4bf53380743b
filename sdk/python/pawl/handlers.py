"""Handlers, what their signatures ask for, and the threads and the event loop that they run on."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import typing
from collections import deque
from typing import Any, Callable

from .codec import encode
from .decode import Mismatch, decode
from .delivery import Delivery
from .errors import INVALID_INPUT, INVALID_RESULT, ConfigError, Failed, InvalidBody, Permanent
from .hints import unreadable
from .step import Step

_NONE = inspect.Parameter.empty


class Handler:
    """A user's function, called with what its parameters ask for: the decoded input, the step, both or neither.

    The step goes to the parameter that is annotated as Step or called `step`; the input goes to the other one, decoded
    into its annotation.
    """

    def __init__(self, name: str, function: Callable[..., Any], refuse_unknown: bool) -> None:
        self.name, self.function, self._refuse_unknown = name, function, refuse_unknown
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))
        self._takes: list[str] = []
        self._input_type: Any = Any
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except NameError as problem:
            raise ConfigError(f"handler {name!r}: its annotations cannot be read: {problem}; define the types at the module's top level") from None
        except TypeError:  # an object with __call__ has none of its own
            hints = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.default is not _NONE or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.kind is parameter.KEYWORD_ONLY:
                raise ConfigError(f"handler {name!r}: parameter {parameter.name!r} is keyword-only; a handler takes (input), (input, step) or (step)")
            hint = hints.get(parameter.name, Any)
            if hint is Step or parameter.name == "step" and hint is Any:
                self._takes.append("step")
            else:
                self._takes.append("input")
                self._input_type = hint
                if found := unreadable(hint):
                    raise ConfigError(f"handler {name!r}: JSON is not read into {found}: make it a dataclass, a TypedDict or a pydantic model, or take a dict")
        if len(set(self._takes)) < len(self._takes):
            raise ConfigError(f"handler {name!r} takes {len(self._takes)} parameters; it takes (input), (input, step) or (step)")

    def arguments(self, delivery: Delivery) -> list[Any]:
        """What to call the function with. Raises Permanent when the input does not fit."""
        step = Step(delivery, self._refuse_unknown)
        given: list[Any] = []
        for what in self._takes:
            if what == "step":
                given.append(step)
                continue
            try:
                given.append(decode(delivery.body.get("input"), self._input_type, refuse_unknown=self._refuse_unknown))
            except Mismatch as problem:
                raise Permanent(f"reading input: {problem}", type=INVALID_INPUT) from None
        return given

    def finish(self, delivery: Delivery, output: Any) -> str | None:
        """The result as JSON text. Raises Permanent for what the database would refuse."""
        if delivery.in_transaction:
            return None  # its result went with the transaction
        try:
            return encode(output)
        except InvalidBody as problem:
            raise Permanent(f"writing result: {problem}", type=INVALID_RESULT) from None

    def call(self, delivery: Delivery) -> Any:
        """What the function returns: its output, or what is to be awaited for that. Raises what it and arguments raise."""
        return self.function(*self.arguments(delivery))

    async def run_async(self, delivery: Delivery, begun: Any = None) -> str | None:
        """Calls the function and awaits it; begun: call has done so already."""
        try:
            return self.finish(delivery, await (self.call(delivery) if begun is None else begun))
        except (SystemExit, KeyboardInterrupt) as problem:  # asyncio would end its loop, and all handlers with it
            raise Failed(f"the handler raised {type(problem).__name__}", type=type(problem).__name__) from problem


Done = Callable[[Delivery, "str | None", "BaseException | None"], None]


class Threads:
    """Daemon threads for synchronous handlers, made as they are needed: one that never returns does not keep the process.
    What turns out to be awaitable (an async function behind a decorator that is none) goes on in the loop."""

    def __init__(self, most: int, loop: Callable[[], Loop]) -> None:
        self._most, self._loop = most, loop
        self._changed = threading.Condition()
        # What follows is guarded by _changed.
        self._count = self._idle = 0
        self._jobs: deque[tuple[Handler, Delivery, Done]] = deque()
        self._stopped = False

    def start(self, handler: Handler, delivery: Delivery, done: Done) -> None:
        with self._changed:
            self._jobs.append((handler, delivery, done))
            if len(self._jobs) > self._idle and self._count < self._most:
                self._count += 1
                try:
                    threading.Thread(target=self._work, name=f"pawl-handler-{self._count}", daemon=True).start()
                except BaseException:
                    self._count -= 1
                    self._jobs.pop()
                    raise
            else:
                self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            contextvars.Context().run(self._run, *job)
            job = None  # nothing is kept alive by an idle thread

    def _next(self) -> tuple[Handler, Delivery, Done] | None:
        with self._changed:
            while not self._jobs:
                if self._stopped:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return self._jobs.popleft()

    def _run(self, handler: Handler, delivery: Delivery, done: Done) -> None:
        result, problem = None, None
        try:
            output = handler.call(delivery)
            if inspect.isawaitable(output):
                self._loop().start(handler, delivery, done, output)
                return
            result = handler.finish(delivery, output)
        except BaseException as raised:  # noqa: BLE001 also SystemExit: a handler does not end the worker
            problem = raised
        done(delivery, result, problem)


class Loop:
    """The event loop of asyncio handlers, on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop's thread only
        self._thread = threading.Thread(target=self._serve, name="pawl-asyncio", daemon=True)
        self._thread.start()

    def start(self, handler: Handler, delivery: Delivery, done: Done, begun: Any = None) -> None:
        self._loop.call_soon_threadsafe(self._begin, handler, delivery, done, begun)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=2)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        if left := asyncio.all_tasks(self._loop):  # handlers that did not heed their cancelling
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=1))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _begin(self, handler: Handler, delivery: Delivery, done: Done, begun: Any) -> None:
        task = self._loop.create_task(self._run(handler, delivery, done, begun), name=handler.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, handler: Handler, delivery: Delivery, done: Done, begun: Any) -> None:
        # A task of its own for the handler: a cancel that comes before its first line must not be lost.
        task = asyncio.ensure_future(handler.run_async(delivery, begun))
        delivery.runs_as(self._loop, task)
        await asyncio.wait([task])
        if task.cancelled():
            done(delivery, None, asyncio.CancelledError())
        elif (problem := task.exception()) is not None:
            done(delivery, None, problem)
        else:
            done(delivery, task.result(), None)
