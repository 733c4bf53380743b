"""The worker that the conformance kit runs for Python: python3 sdk/python/conformance_worker.py"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psycopg  # noqa: E402

import pawl  # noqa: E402

worker = pawl.Worker(os.environ["PAWL_QUEUE"], grace=float(os.environ.get("PAWL_GRACE_SECONDS") or 20))


@worker.handler("echo")
def echo(value: Any) -> Any:
    return value


@worker.handler("gather")
def gather(value: Any, step: pawl.Step) -> dict[str, Any]:
    return {"input": value, "dependencies": step.dependencies, "config": step.config()}


@worker.handler("facts")
def facts(value: dict[str, Any], step: pawl.Step) -> dict[str, Any]:
    if value.get("fail_first") and step.attempt == 1:
        raise RuntimeError(f"token {step.token}")
    return {"attempt": step.attempt, "token": step.token, "step": step.name, "correlation_id": step.correlation_id, "config": step.config()}


@worker.handler("sleep")
def sleep(value: dict[str, Any], step: pawl.Step) -> dict[str, Any]:
    if step.cancelled.wait(value["ms"] / 1000):
        step.check()
    return {"slept": value["ms"]}


@worker.handler("fail_once")
async def fail_once(step: pawl.Step) -> dict[str, Any]:
    if step.attempt == 1:
        raise RuntimeError("as told")
    return {"attempt": step.attempt}


@worker.handler("fail")
def fail(value: dict[str, str]) -> None:
    raise pawl.Failed(value["message"], type=value["type"])


@worker.handler("fail_permanently")
def fail_permanently(value: dict[str, str]) -> None:
    raise pawl.Permanent(value["message"], type=value["type"])


@worker.handler("reject")
async def reject(value: dict[str, str]) -> None:
    raise pawl.Rejected(value["message"], type=value["type"])


@worker.handler("retry_later")
def retry_later(value: dict[str, float]) -> None:
    raise pawl.RetryAfter("later", value["seconds"])


@worker.handler("blow_up")
def blow_up(value: dict[str, Any]) -> Any:
    return value["no"]["such"]["field"]


@worker.handler("bad_output")
def bad_output() -> str:
    return "a\0b"


@worker.handler("crash")
def crash(step: pawl.Step) -> dict[str, int]:
    if step.delivery == 1:
        os._exit(7)
    return {"delivery": step.delivery}


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(message)s")
    try:
        worker.run()
    except (pawl.PawlError, psycopg.Error) as problem:
        sys.exit(f"conformance_worker: {problem}")
