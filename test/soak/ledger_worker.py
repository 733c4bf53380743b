"""The soak's worker in Python: it writes what it does into a file that no fault reaches, before it answers."""

import json
import logging
import os
import secrets
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "python"))

import pawl  # noqa: E402

logging.basicConfig(level=logging.WARNING)
name = os.environ["PAWL_NAME"]
book = os.open(os.environ["PAWL_LEDGER"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
worker = pawl.Worker({"fire_queue": 8}, name=f"{name}-{os.getpid()}", grace=5)


@worker.handler("fire.work")
def work(told: dict, step: pawl.Step) -> dict:
    entry = {
        "task": str(step.task_id), "step": step.name, "attempt": step.attempt, "delivery": step.delivery, "token": step.token,
        "nonce": secrets.token_hex(13), "needs": {n: r["nonce"] for n, r in step.dependencies.items()}, "worker": name,
    }
    write("start", entry)
    until = time.monotonic() + told.get("ms", 0) / 1000
    while (left := until - time.monotonic()) > 0:
        step.check()
        time.sleep(min(left, 0.1))
    if step.attempt <= told.get("fail", 0):
        raise (pawl.Permanent if told.get("permanent") else pawl.Failed)("the input says so", type="as_told")
    write("done", entry)
    return {"nonce": entry["nonce"]}


def write(what: str, entry: dict) -> None:
    os.write(book, (json.dumps({"what": what, **entry}) + "\n").encode())


worker.run()
