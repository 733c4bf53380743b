"""Connections that open themselves, survive outages of the database, and never hang for ever."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from .codec import parse
from .errors import ClientError, ConfigError

CALL_TIMEOUT = 10.0  # seconds of one call, a third of the default lease: a connection that has silently died is noticed in time
CONNECT_TIMEOUT = 10  # seconds
CLOSED = "the client is closed"
MIN_TIMEOUT = 0.5  # seconds that a statement has when connecting has taken the rest

Connect = Callable[..., "psycopg.Connection[Any]"]  # takes the seconds that connecting may last


def find_url(url: str | None = None) -> str:
    """The database's URL: the argument, PAWL_DATABASE_URL, else that of a `pawl dev` which runs on this machine."""
    if url or (url := os.environ.get("PAWL_DATABASE_URL")):
        return url
    try:
        if url := _dev_url().read_text().strip():
            return url
    except OSError:
        pass
    raise ConfigError(
        "no database is named: start a private one with `pawl dev`, or name yours: "
        "export PAWL_DATABASE_URL=postgres://user@host/database"
    )


def _dev_url() -> Path:
    """Where `pawl dev` notes its URL."""
    user = os.getuid() if hasattr(os, "getuid") else -1  # as Go says it on Windows
    return _cache() / f"dev-{user}.url"


def _cache() -> Path:
    if folder := os.environ.get("PAWL_CACHE_DIR"):
        return Path(folder)
    if not hasattr(os, "geteuid"):
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "pawl"
    if os.geteuid() == 0:
        return Path("/var/cache/pawl")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pawl"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pawl"


def connector(url: str, name: str) -> Connect:
    """A function that opens connections: autocommit, and nothing prepared, so that transaction poolers do. They can say all
    that JSON can, whatever PGCLIENTENCODING is."""

    def connect(timeout: float = CONNECT_TIMEOUT) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=max(1, int(min(timeout, CONNECT_TIMEOUT))),
                fallback_application_name=name, client_encoding="utf8")  # fmt: skip
        except psycopg.ProgrammingError:  # its text may repeat the URL
            raise ConfigError("reading the database URL: it is none of Postgres; it looks like postgres://user@host:5432/database") from None
        except psycopg.OperationalError as problem:
            known = conninfo_to_dict(url)  # the error does not say where
            where = f"database {known.get('dbname', '')} at {known.get('host', 'localhost')}:{known.get('port', 5432)}"
            text = " ".join(str(problem).split()).rstrip(": ")
            raise psycopg.OperationalError(
                f"connecting to {where}: {text}: check that Postgres runs there, and PAWL_DATABASE_URL or the URL in the code; "
                "`pawl dev` starts a private one"
            ) from problem

    return connect


class Guard:
    """Cuts the connections whose calls take too long. One thread for any number of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[Database, float] = {}  # guarded by _lock: when the running call is to end
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def begin(self, database: Database, seconds: float) -> None:
        with self._lock:
            self._calls[database] = time.monotonic() + seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="pawl-guard", daemon=True)
                self._thread.start()

    def end(self, database: Database) -> None:
        with self._lock:
            self._calls.pop(database, None)

    def shorten(self, seconds: float) -> None:
        """No call that runs now takes longer than this."""
        with self._lock:
            limit = time.monotonic() + seconds
            self._calls = {database: min(until, limit) for database, until in self._calls.items()}

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        while not self._stopped.wait(0.2):
            with self._lock:
                now = time.monotonic()
                late = [database for database, until in self._calls.items() if until < now]
                for database in late:
                    database.cut()
                    del self._calls[database]


class Database:
    """One connection, opened when it is needed and again after it was lost. Calls wait for each other."""

    def __init__(self, connect: Connect, guard: Guard) -> None:
        self._connect, self._guard = connect, guard
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None  # guarded by _lock, cut apart
        self._closed = False  # for good

    def call(self, sql: str, arguments: tuple[Any, ...] = (), timeout: float = CALL_TIMEOUT) -> Any:
        """Runs a statement that gives one row with one JSON text, and returns what it says."""
        rows = self.rows(sql, arguments, timeout)
        return parse(rows[0][0])

    def rows(self, sql: str, arguments: tuple[Any, ...] = (), timeout: float = CALL_TIMEOUT) -> list[tuple[Any, ...]]:
        """Runs a statement and returns its rows. The timeout is of connecting, too; psycopg takes 2 s for it at least."""
        with self._lock:
            if self._closed:
                raise ClientError(CLOSED)
            began = time.monotonic()
            if self._connection is None or self._connection.closed:
                self._connection = self._connect(timeout)
            connection = self._connection
            try:
                self._guard.begin(self, max(began + timeout - time.monotonic(), MIN_TIMEOUT))
                cursor = connection.execute(sql, arguments)
                return cursor.fetchall() if cursor.description else []
            except BaseException:  # also what a signal handler raises: its statement goes on, and the connection takes no other
                if connection.closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    connection.close()
                    self._connection = None
                raise
            finally:
                self._guard.end(self)

    def cut(self) -> None:
        """Ends the connection under a call that hangs; the call raises."""
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            pass  # it has just ended

    def close(self, for_good: bool = False) -> None:
        """Closes the connection. The next call opens another, or raises ClientError when it is closed for good."""
        self._closed = self._closed or for_good
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def at_once(connection: Any) -> str | None:
    """What to do about a connection of the caller on which a statement is committed at once, apart from what it belongs to;
    None when it is part of a transaction. The connection may be sync or async."""
    if getattr(connection, "autocommit", False) is not True or connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return None
    return (
        "the connection is in autocommit mode and no transaction is open: each statement is committed for itself; "
        "put `with connection.transaction():` around all that belongs together, or connect without autocommit"
    )


def explain(problem: BaseException) -> str:
    """The text of a database error with what to do about it, in one line."""
    text = " ".join(str(problem).split())
    if not isinstance(problem, psycopg.Error):
        return text
    text = problem.diag.message_primary or text
    hint = problem.diag.message_hint
    match problem.sqlstate:
        case "42883" | "3F000" | "42P01":
            return f"{text}: the database lacks Pawl's functions, or an earlier version made them: run `pawl migrate`"
        case "42501":
            return f"{text}: {hint or 'grant the role the queue'}"
    return f"{text}: {hint}" if hint else text


def waiting(limit: str, call: str) -> str:
    """A statement that makes a call, in which each lock is waited for no longer than the limit ("50ms"): then it ends with
    55P03. Who closes a connection instead leaves a server process behind that waits on, and in the end too many of them."""
    # A case has an order. The setting ends with the statement.
    return f"select case when set_config('lock_timeout', '{limit}', true) is not null then {call}::text end"


def refuses_data(problem: BaseException) -> str | None:
    """The SQLSTATE when the database refused what a call carried, so that repeating it is useless."""
    state = problem.sqlstate if isinstance(problem, psycopg.Error) else None
    if state and (state == "PW016" or state[:2] in ("22", "54")):
        return state
    return None


# States of the database or of a role, which pass or want mending, whatever a call carries.
_NOT_OF_REPORTS = ("25006", "55P03", "PW010")
_NOT_OF_REPORTS_CLASSES = ("08", "28", "40", "53", "57", "58")
# Something is missing, or a right to it: of Pawl, then for all reports, or of what a trigger of the user's table needs.
_DOUBTFUL = ("3F000", "42501", "42883", "42P01")


def refuses_report(problem: BaseException, claims: bool) -> bool:
    """Whether the database refused a call for what one of its reports asked of it: then the others go through without that
    one. A report with an entity claim (claims) moves a row of the user's, whose constraints and triggers may raise anything."""
    state = problem.sqlstate if isinstance(problem, psycopg.Error) else None
    if state in _DOUBTFUL:
        return claims
    return bool(state) and state not in _NOT_OF_REPORTS and state[:2] not in _NOT_OF_REPORTS_CLASSES


def is_locked(problem: BaseException) -> bool:
    """Whether a call ended while it waited, most likely for one message that somebody has locked."""
    return isinstance(problem, psycopg.Error) and problem.sqlstate in ("55P03", "57014")
