"""The worker: handlers, queues, and how it starts and stops."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import time
from queue import Empty, SimpleQueue
from typing import Any, Callable, Iterable, Mapping, TypeVar

import psycopg

from .beat import Beat
from .database import Database, Guard, connector, explain, find_url
from .delivery import Delivery
from .errors import ConfigError, PawlError, Stopping
from .handlers import Done, Handler, Loop, Threads
from .lane import Lane
from .listen import Listener
from .names import check_step_queue

Function = TypeVar("Function", bound=Callable[..., Any])

CONCURRENCY = 32  # handlers of a queue that run at once
GRACE = 20.0  # seconds
POLL, PROVEN_POLL = 1.0, 5.0  # seconds
_HAND_BACK = 2.0  # seconds that handlers have to return once their work is no longer wanted
_WIND_UP = 10.0  # seconds for the last reports and the giving back


class Worker:
    """Runs handlers for the steps of its queues. It starts once.

    queues: one name, several names, or a mapping of names to concurrency (how many handlers run at once).
    database_url: default PAWL_DATABASE_URL, else a running `pawl dev`.
    name: tells the worker's process apart, in the audit and in logs. Default: host, process id and a random part.
    concurrency: of the queues for which none is given.
    grace: seconds that stopping lets handlers finish before they are told to stop.
    poll, proven_poll: seconds between looks at an idle queue while notifications are not, and are, proven to arrive.
    listen: False does without LISTEN, for transaction poolers. The worker polls.
    refuse_unknown_fields: makes fields of an input that the handler's type does not have an error. By default they are left
      to other steps: a task's input is one for all of them, and the template's input_schema guards it.
    log: takes what happens, never an input, a result or, without log_errors, an error's text. Default: the logger `pawl`.
    log_errors: adds the texts of handlers' exceptions to the log, which may then hold what an input holds.
    """

    def __init__(
        self,
        queues: str | Iterable[str] | Mapping[str, int],
        *,
        database_url: str | None = None,
        name: str | None = None,
        concurrency: int = CONCURRENCY,
        grace: float = GRACE,
        poll: float = POLL,
        proven_poll: float = PROVEN_POLL,
        listen: bool = True,
        refuse_unknown_fields: bool = False,
        log: logging.Logger | None = None,
        log_errors: bool = False,
    ) -> None:
        if isinstance(queues, str):
            queues = [queues]
        pairs = queues.items() if isinstance(queues, Mapping) else [(queue, concurrency) for queue in queues]
        self.queues: dict[str, int] = {}
        for queue, slots in pairs:
            check_step_queue(queue)
            if queue in self.queues:
                raise ConfigError(f"queue {queue!r} is named twice")
            if not isinstance(slots, int) or slots < 1:
                raise ConfigError(f"queue {queue!r}: concurrency {slots!r} is not a positive number")
            self.queues[queue] = slots
        if not self.queues:
            raise ConfigError("a worker needs at least one queue: Worker('shop_queue')")
        self.database_url, self.grace, self.poll, self.proven_poll = database_url, grace, poll, proven_poll
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.log, self.log_errors = log or logging.getLogger("pawl"), log_errors
        self.handlers: dict[str, Handler] = {}
        self.dead = threading.Event()  # set when stopping has no more time
        self._listen, self._refuse_unknown = listen, refuse_unknown_fields
        # Signal handlers use these. They take no lock: the thread that a signal interrupts may hold that very one.
        self._wishes: SimpleQueue[None] = SimpleQueue()  # run is to stop the worker
        self._asked_to_stop = False
        self._hurry = False  # a second signal: no more grace
        self._stopped = threading.Event()
        self._once = threading.Lock()
        self._started = self._stop_began = False  # guarded by _once
        self._guard = Guard()
        self._crashed: list[str] = []  # queues
        self._lanes: list[Lane] = []
        self._listener: Listener | None = None
        self._threads: Threads | None = None
        self._loop: Loop | None = None
        self._beat: Beat | None = None

    def handler(self, name: str) -> Callable[[Function], Function]:
        """Decorator: registers the function for steps that name it, whichever of the worker's queues they come from.

        The function takes (input), (input, step) or (step) and may be `async`. The input is decoded into its annotation;
        what the function returns becomes the step's result as JSON. The function itself stays as it is.
        """
        if not isinstance(name, str) or not name:
            raise ConfigError("a handler needs a name: @worker.handler('shop.charge')")

        def register(function: Function) -> Function:
            if name in self.handlers:
                raise ConfigError(f"handler {name!r} is registered twice")
            if self._started:
                raise ConfigError(f"handler {name!r} is registered after the worker has started")
            self.handlers[name] = Handler(name, function, self._refuse_unknown)
            return function

        return register

    def run(self) -> None:
        """Works until SIGTERM, SIGINT or stop(), then stops gracefully. A second signal ends the grace period.

        Raises what start raises, and PawlError when a queue had to be given up: start the process anew then.
        """
        former: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                former[number] = signal.signal(number, self._signalled)
        try:
            self.start()
            while not self._asked_to_stop:
                try:
                    self._wishes.get(timeout=1.0)  # signals reach only a thread that runs
                except Empty:
                    pass
            self.stop()
            if self._crashed:
                raise PawlError(f"the worker has met a bug on queue {', '.join(self._crashed)}, and has stopped; its log says more")
        finally:
            for number, what in former.items():
                signal.signal(number, what)

    def _signalled(self, number: int, _frame: Any) -> None:
        self._hurry = self._asked_to_stop
        self.request_stop()

    def request_stop(self) -> None:
        """Has run() stop the worker and return. It returns at once and may be called from anywhere, signal handlers too."""
        self._asked_to_stop = True
        self._wishes.put(None)

    def start(self) -> None:
        """Connects, checks that the queues exist, and begins to work; it returns at once then.

        Raises ConfigError, and psycopg.OperationalError when the database does not answer.
        """
        with self._once:
            if self._started:
                raise ConfigError("the worker was started or stopped before; make a new one")
            if not self.handlers:
                raise ConfigError("no handler is registered: put @worker.handler('name') before a function")
            self._connect()
            self._started = True
        self._threads = Threads(sum(self.queues.values()), self._event_loop)
        if self._listener:
            for lane in self._lanes:
                self._listener.subscribe(f"pgmq.q_{lane.queue}.INSERT", lane.wake)
            self._listener.start()
        for lane in self._lanes:
            lane.thread.start()
            lane.apart.thread.start()
        self._beat.start()
        self.log.info("worker %s started on %s with handlers %s", self.name, ", ".join(self.queues), ", ".join(sorted(self.handlers)))

    def _connect(self) -> None:
        """Asks for nothing on every queue: that tells whether it exists and may be read."""
        connect = connector(find_url(self.database_url), "pawl-worker")
        lanes = []
        try:
            for queue, slots in self.queues.items():
                lanes.append(Lane(self, queue, slots, Database(connect, self._guard), Database(connect, self._guard)))
                lanes[-1].database.call("select pawl.claim_steps(%s, 0, %s)::text", (queue, self.name))
        except psycopg.Error as problem:
            for lane in lanes:
                lane.database.close()
            if problem.sqlstate is None or problem.sqlstate[:2] in ("08", "53", "57"):
                raise  # there is no database, for now
            text = explain(problem)
            if problem.sqlstate == "PW010":
                text += "; a first request for the queue makes it: python -m pawl enqueue HANDLER INPUT --queue NAME"
            raise ConfigError(f"starting worker: {text}") from problem
        self._lanes = lanes
        beats = Database(connect, self._guard)
        self._beat = Beat(lanes, beats)
        if self._listen:
            self._listener = Listener(connect, beats, self.log)

    def stop(self, grace: float | None = None) -> None:
        """Ends the worker: it claims no more, lets handlers finish for the grace period, then tells them to stop (cause
        Stopping), reports what has ended and gives back what has not, so that other workers have it at once.

        A handler that goes on all the same is left behind: its result will not count once somebody else has the step. It
        returns when all of that is done, and can be called any number of times.
        """
        self.request_stop()
        with self._once:
            first, self._stop_began = not self._stop_began, True
            started, self._started = self._started, True
        if first:
            try:
                if started:
                    self._wind_down(self.grace if grace is None else grace)
            finally:
                self._stopped.set()
        self._stopped.wait()

    def _wind_down(self, grace: float) -> None:
        self.log.info("worker %s stops", self.name)
        for lane in self._lanes:
            with lane.changed:
                lane.stopping = True
                lane.changed.notify()
        self._wait_for(lambda lane: not lane.running and not lane.ended, grace, lambda: self._hurry)
        for lane in self._lanes:
            with lane.changed:
                held = list(lane.held.values())
            for delivery in held:
                delivery.cancel(Stopping())
        self._wait_for(lambda lane: not lane.running, _HAND_BACK, lambda: False)
        for lane in self._lanes:
            with lane.changed:
                lane.quitting = True
                lane.changed.notify()
        # From here on calls that hang do not hold us up for longer than this.
        dying = threading.Timer(_WIND_UP, self._die)
        dying.daemon = True
        dying.start()
        for lane in self._lanes:
            lane.thread.join(_WIND_UP + 5)
        dying.cancel()
        self._die()
        for lane in self._lanes:
            lane.apart.thread.join(5)
        self._beat.stop()
        if self._listener:
            self._listener.stop()
        self._threads.stop()
        if self._loop:
            self._loop.stop()
        self._guard.stop()
        self.log.info("worker %s stopped", self.name)

    def _die(self) -> None:
        self.dead.set()
        self._guard.shorten(0.5)
        for lane in self._lanes:
            with lane.apart.changed:
                lane.apart.changed.notify_all()

    def _wait_for(self, condition: Callable[[Lane], bool], seconds: float, hurry: Callable[[], bool]) -> None:
        until = time.monotonic() + seconds
        while not all(condition(lane) for lane in self._lanes) and time.monotonic() < until:
            if hurry():
                return
            time.sleep(0.005)

    def crashed(self, queue: str) -> None:
        """A lane has met a bug: the process should end and be started anew."""
        self._crashed.append(queue)
        self.request_stop()

    def idle(self) -> float:
        """Seconds for which a queue without work is left alone."""
        return self.proven_poll if self._listener and self._listener.proven else self.poll

    def _event_loop(self) -> Loop:
        """The loop of the asyncio handlers, made when one is first started."""
        with self._once:
            if self._loop is None:
                self._loop = Loop()
            return self._loop

    def start_handler(self, handler: Handler, delivery: Delivery, done: Done) -> None:
        """Runs a handler where it belongs: its thread, or the event loop."""
        (self._event_loop() if handler.is_async else self._threads).start(handler, delivery, done)
