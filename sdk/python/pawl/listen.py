"""LISTEN on a connection of its own, that proves to itself now and then that notifications arrive."""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
import uuid
from contextlib import closing
from typing import Any, Callable

import psycopg
from psycopg import sql

from .database import Connect, Database

PROBE_EVERY = 10.0  # seconds
PROBE_TIMEOUT = 5.0
RETRY_MIN, RETRY_MAX = 0.1, 10.0
_GLANCE = 0.5  # seconds between looks whether a probe is due


class Listener:
    """Wakes subscribers when Postgres notifies on their channels.

    A wake-up is a hint and carries nothing. A connection through a transaction pooler takes LISTEN without an error and
    never hears anything, so the listener sends itself a notification through another connection; while none arrives
    ``proven`` is false, and subscribers should look for work by themselves, often. The probing connection is closed by stop.
    """

    def __init__(self, connect: Connect, probe: Database, log: logging.Logger) -> None:
        self._connect, self._probe, self._log = connect, probe, log
        self._channel = "pawl_probe_" + uuid.uuid4().hex[:12]
        self._lock = threading.Lock()
        self._wake: dict[str, list[Callable[[], None]]] = {}  # guarded by _lock
        self._stopped = threading.Event()
        self._bell, self._rung = socket.socketpair()  # ends a wait
        self._thread: threading.Thread | None = None
        self.proven = False

    def subscribe(self, channel: str, wake: Callable[[], None]) -> None:
        """Calls wake, from the listener's thread, at each notification on the channel and after each reconnection."""
        with self._lock:
            self._wake.setdefault(channel, []).append(wake)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pawl-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            if self._stopped.is_set():
                return
            self._stopped.set()
        self._bell.send(b"x")
        if self._thread:
            self._thread.join(timeout=PROBE_TIMEOUT)
        self._probe.close()
        self._bell.close()
        self._rung.close()

    def _run(self) -> None:
        pause, deaf = RETRY_MIN, False
        while not self._stopped.is_set():
            was_deaf, heard = False, False
            try:
                with closing(self._connect()) as connection, selectors.DefaultSelector() as selector:
                    heard = self._serve(connection, selector)
                    was_deaf = not heard
            except (psycopg.Error, OSError) as problem:
                self._log.debug("listening: the connection ended: %s", problem)
            if self.proven and not self._stopped.is_set():
                self._log.info("listening: the connection was lost, queues are polled meanwhile")
            elif was_deaf and not deaf and not self._stopped.is_set():
                deaf = True
                self._log.warning("listening: notifications do not arrive, queues are polled; behind a transaction pooler say listen=False")
            heard = heard or self.proven
            self.proven = False
            pause = RETRY_MIN if heard else min(2 * pause, RETRY_MAX)
            self._stopped.wait(pause)

    def _serve(self, connection: psycopg.Connection[Any], selector: selectors.BaseSelector) -> bool:
        """Listens until the connection ends, raises, or is deaf. Returns whether it heard its probe."""
        with self._lock:
            channels = [self._channel, *self._wake]
        for channel in channels:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        if self._stopped.is_set():
            return False
        for end in (connection.fileno(), self._rung.fileno()):
            selector.register(end, selectors.EVENT_READ)
        self._wake_all()  # what was sent while nobody listened is found by looking
        heard, next_probe, deadline = False, 0.0, 0.0
        while not self._stopped.is_set():
            now = time.monotonic()
            if deadline and now > deadline:
                return heard
            if not deadline and now >= next_probe:
                next_probe = now + PROBE_EVERY
                try:
                    self._probe.rows("select pg_notify(%s, '')", (self._channel,), PROBE_TIMEOUT)
                    deadline = time.monotonic() + PROBE_TIMEOUT
                except (psycopg.Error, OSError):
                    pass  # unproven, tried again at the next time
            for channel in self._heard(connection, selector):
                if channel == self._channel:
                    heard, deadline = True, 0.0
                    if not self.proven:
                        self.proven = True
                        self._log.debug("listening: notifications arrive")
                else:
                    for wake in self._wake.get(channel, ()):
                        wake()
        return heard

    def _heard(self, connection: psycopg.Connection[Any], selector: selectors.BaseSelector) -> list[str]:
        selector.select(_GLANCE)
        if self._stopped.is_set():
            return []
        connection.pgconn.consume_input()
        channels = []
        while note := connection.pgconn.notifies():
            channels.append(note.relname.decode())
        return channels

    def _wake_all(self) -> None:
        with self._lock:
            wakes = [wake for several in self._wake.values() for wake in several]
        for wake in wakes:
            wake()
