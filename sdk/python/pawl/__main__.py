"""python -m pawl worker MODULE:WORKER, python -m pawl enqueue HANDLER [INPUT], python -m pawl submit TEMPLATE [INPUT]"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import sys
import threading
from typing import Any

import psycopg

from .client import Client
from .database import explain
from .errors import ConfigError, PawlError, TaskEnded, WaitTimeout
from .worker import Worker


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 refused or failed, 2 used wrongly, 3 no database."""
    parser = argparse.ArgumentParser(prog="python -m pawl", allow_abbrev=False, description="Workers and producers for Pawl.")
    parser.add_argument("--database-url", help="default: $PAWL_DATABASE_URL, else a running `pawl dev`")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    worker = commands.add_parser("worker", allow_abbrev=False, help="run a worker until SIGTERM or Ctrl-C")
    worker.add_argument("worker", metavar="MODULE:WORKER", help="where the worker is, as in shop:worker or shop.handlers:worker")
    worker.add_argument("--queue", action="append", metavar="NAME[=CONCURRENCY]", help="instead of the queues in the code; repeatable")
    worker.add_argument("--name", help="of this process, in the audit")
    worker.add_argument("--log", default="info", choices=("debug", "info", "warning", "error"), help="default: info")
    worker.add_argument("--until-eof", action="store_true", help="stop, too, when standard input ends: for supervisors that hold it open")
    worker.set_defaults(run=_run_worker)

    for name, what, run in (("enqueue", "HANDLER", _enqueue), ("submit", "TEMPLATE", _submit)):
        command = commands.add_parser(name, allow_abbrev=False, help=f"start a task of {'one step' if name == 'enqueue' else 'a template'}")
        command.add_argument("what", metavar=what)
        command.add_argument("input", nargs="?", default="{}", help="JSON, - for standard input; default {}")
        command.add_argument("--key", help="identifies the task among those of its template")
        command.add_argument("--wait", nargs="?", type=float, const=float("inf"), metavar="SECONDS", help="for the result, and print it")
        if name == "enqueue":
            command.add_argument("--queue", help="default: the namespace's, default_queue")
            command.add_argument("--namespace", help="default: default")
        command.set_defaults(run=run)

    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except TaskEnded as ended:
        print(f"pawl: {ended}", file=sys.stderr)
    except ConfigError as problem:
        print(f"pawl: {problem}", file=sys.stderr)
        return 2
    except PawlError as problem:
        print(f"pawl: {problem}", file=sys.stderr)
    except psycopg.Error as problem:
        print(f"pawl: {explain(problem)}", file=sys.stderr)
        return 3
    return 1


def load(where: str) -> Worker:
    """The worker that MODULE:WORKER names; modules are looked for in the current folder too."""
    module_name, _, attribute = where.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name and (module_name + ".").startswith(problem.name + "."):
            raise ConfigError(f"there is no module {module_name!r} in {os.getcwd()} or among the installed ones") from None
        raise
    found = getattr(module, attribute or "worker", None)
    if not isinstance(found, Worker):
        raise ConfigError(f"{module_name!r} has no worker {attribute or 'worker'!r}; name it as in shop:worker")
    return found


def _run_worker(options: argparse.Namespace) -> int:
    logging.basicConfig(level=options.log.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    worker = load(options.worker)
    if options.database_url:
        worker.database_url = options.database_url
    if options.name:
        worker.name = options.name
    if options.queue:
        pairs = [queue.partition("=") for queue in options.queue]
        try:
            worker.queues = Worker({name: int(slots or 0) if sign else 32 for name, sign, slots in pairs}).queues
        except ValueError:
            raise ConfigError("--queue is NAME or NAME=CONCURRENCY") from None
    if options.until_eof:
        threading.Thread(target=_stop_at_eof, args=(worker,), name="pawl-eof", daemon=True).start()
    worker.run()
    return 0


def _stop_at_eof(worker: Worker) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    worker.request_stop()


def _read(text: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as problem:
        raise ConfigError(f"the input is no JSON: {problem}") from None


def _enqueue(options: argparse.Namespace) -> int:
    with Client(options.database_url) as client:
        sent = client.enqueue(options.what, _read(options.input), key=options.key, queue=options.queue, namespace=options.namespace)
        return _show(client, sent, options.wait)


def _submit(options: argparse.Namespace) -> int:
    with Client(options.database_url) as client:
        return _show(client, client.submit(options.what, _read(options.input), key=options.key), options.wait)


def _show(client: Client, sent: Any, wait: float | None) -> int:
    try:
        print(client.decided(sent, 10), flush=True)
    except WaitTimeout as problem:
        print(sent.task_id, flush=True)
        print(f"pawl: {problem}: is an orchestrator running?", file=sys.stderr)
    if wait is not None:
        task = client.wait(sent, None if wait == float("inf") else wait)
        print(json.dumps({"status": task.status, "result": task.result}, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
