"""The worker that the conformance kit runs for HTTP: examples/http/worker.py with the kit's handlers."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "http"))
from worker import Failure, Worker  # noqa: E402


def facts(step):
    if step["input"].get("fail_first") and step["attempt"] == 1:
        raise Failure(f"token {step['token']}")
    return {key: step.get(key) for key in ("attempt", "token", "step", "correlation_id", "config")}


def sleep(step):
    if step.unwanted.wait(step["input"]["ms"] / 1000):
        raise Failure("not wanted any more", "interrupted")
    return {"slept": step["input"]["ms"]}


def fail_once(step):
    if step["attempt"] == 1:
        raise Failure("as told")
    return {"attempt": step["attempt"]}


def fail(**how):
    def handler(step):
        raise Failure(step["input"]["message"], step["input"]["type"], **how)

    return handler


def retry_later(step):
    raise Failure("later", after=step["input"]["seconds"])


def crash(step):
    if step["delivery"] == 1:
        os._exit(7)
    return {"delivery": step["delivery"]}


handlers = {
    "echo": lambda step: step["input"],
    "gather": lambda step: {key: step[key] for key in ("input", "dependencies", "config")},
    "facts": facts,
    "sleep": sleep,
    "fail_once": fail_once,
    "fail": fail(),
    "fail_permanently": fail(retryable=False),
    "reject": fail(retryable=False, rejected=True),
    "retry_later": retry_later,
    "blow_up": lambda step: step["no such field"],
    "bad_output": lambda step: "a\0b",
    "crash": crash,
}

if __name__ == "__main__":
    Worker(os.environ["PAWL_QUEUE"], handlers, grace=float(os.environ.get("PAWL_GRACE_SECONDS", "20"))).run()
