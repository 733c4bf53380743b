"""A worker that talks HTTP to an orchestrator: level 3 of docs/workers.md, with nothing but Python's standard library.

    PAWL_URL=http://orchestrator:8080 PAWL_TOKEN=… python3 worker.py QUEUE

For places without access to the database. A real worker in Python uses sdk/python; this shows the calls.
"""

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

SLOTS = 32  # handlers at once
LOOKS = (0.005, 0.01, 0.04, 0.16, 0.64, 1.0)  # seconds between looks at an empty queue
PATIENCE = 10.0  # seconds for an answer: a third of the usual lease, so that what gets lost can be said again in time
UNANSWERED = (OSError, http.client.HTTPException, ValueError)  # no answer, an error, half an answer, or that of something else


class Failure(Exception):
    """Ends a handler as failed (tried again, not before `after` seconds), permanently failed, or rejected."""

    def __init__(self, message, type="error", retryable=True, rejected=False, after=None):
        super().__init__(message)
        self.type, self.retryable, self.rejected, self.after = type, retryable, rejected, after


class Step(dict):
    """What the claim gave, and `unwanted`: set when the work is cancelled, timed out or lost, or the worker stops."""

    def __init__(self, claimed, asked):
        super().__init__(claimed)
        self.unwanted = threading.Event()
        self.extended(asked)

    def extended(self, asked):
        """Its lease is whole since then, by time.monotonic()."""
        self.beat_at, self.over_at = asked + self["lease_ms"] / 3000, asked + self["lease_ms"] / 1000

    def lease(self):
        return {"msg_id": self["msg_id"], "read_ct": self["read_ct"]}


class Worker:
    """Runs handlers, functions of a Step that return its result, for the steps of one queue."""

    def __init__(self, queue, handlers, grace=20.0):
        self.queue, self.handlers, self.grace = queue, handlers, grace
        self.name = f"http-{socket.gethostname()}-{os.getpid()}"
        self.lock = threading.Lock()
        self.held = {}  # steps at work by message id; guarded by lock
        self.stopping = threading.Event()
        self.free = threading.Semaphore(SLOTS)

    def call(self, what, patience=PATIENCE, **body):
        """One call of the worker API. It raises what UNANSWERED names; every call may be repeated."""
        request = urllib.request.Request(
            f"{os.environ['PAWL_URL']}/v1/worker/{what}",
            json.dumps({"queue": self.queue, "worker": self.name, **body}).encode(),
            {"Authorization": f"Bearer {os.environ['PAWL_TOKEN']}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=patience) as answer:
            return json.load(answer)

    def run(self):
        """Works until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stopping.set())
        threading.Thread(target=self.beat, daemon=True).start()
        look = 0
        while not self.stopping.is_set():
            found = 0
            try:
                found = self.take()
            except UNANSWERED as problem:
                print(f"{self.name}: claiming: {problem}", file=sys.stderr)
                look = len(LOOKS) - 1
            look = 0 if found else min(look + 1, len(LOOKS) - 1)
            self.stopping.wait(0 if found else LOOKS[look])
        self.stop()

    def take(self):
        """Claims steps for the free slots and starts their handlers."""
        slots = 0
        while slots < SLOTS and self.free.acquire(blocking=False):
            slots += 1
        claimed, asked = [], time.monotonic()
        try:
            if slots:
                claimed = self.call("claim", quantity=slots)
            for one in claimed:
                step = Step(one, asked)
                with self.lock:
                    before = self.held.get(step["msg_id"])
                    self.held[step["msg_id"]] = step
                if before:  # its lease was over, and it came back to us
                    before.unwanted.set()
                threading.Thread(target=self.work, args=(step,), daemon=True).start()
        finally:
            for _ in range(slots - len(claimed)):
                self.free.release()
        return len(claimed)

    def work(self, step):
        released = False
        try:
            report = {**step.lease(), **self.outcome(step)}
            released = self.stopping.is_set() and step.unwanted.is_set()  # by stop
            if not released:
                self.report(report)
        finally:
            with self.lock:
                if not released and self.held.get(step["msg_id"]) is step:  # not a later delivery of it
                    del self.held[step["msg_id"]]
            self.free.release()

    def outcome(self, step):
        """What to report of a step."""
        try:
            handler = self.handlers.get(step["handler"])
            if handler is None:
                raise Failure("this worker has no such handler", "unknown_handler")
            result = handler(step)
            try:
                json.dumps(result, allow_nan=False)
            except (TypeError, ValueError) as problem:
                raise Failure(f"the result is no JSON: {problem}", "invalid_result", retryable=False) from None
            return {"status": "complete", "result": result}
        except Failure as failure:
            error = {"type": failure.type, "message": str(failure), "retryable": failure.retryable}
            if failure.after is not None:
                error["retry_after"] = failure.after
            return {"status": "rejected" if failure.rejected else "failed", "error": error}
        except Exception as problem:  # whatever a handler raises fails its attempt
            return {"status": "failed", "error": {"type": type(problem).__name__, "message": str(problem), "retryable": True}}

    def report(self, report):
        replaced = False
        while True:
            try:
                self.call("report", reports=[report])
                return
            except UNANSWERED as problem:
                if getattr(problem, "code", None) not in (400, 413) or replaced:  # it cannot be done now
                    time.sleep(0.5)
                    continue
                # The orchestrator refuses what is reported, and says why; the step fails in its place.
                try:
                    message = json.load(problem)["message"]
                except (*UNANSWERED, LookupError, TypeError):
                    message = f"the result was refused: {problem}"
                replaced, report = True, {k: report[k] for k in ("msg_id", "read_ct")}
                report |= {"status": "failed", "error": {"type": "invalid_result", "message": message, "retryable": False}}

    def beat(self):
        """Extends leases when a third of them is over, and tells handlers whose work is no longer wanted."""
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            with self.lock:
                due = [step for step in self.held.values() if now >= step.beat_at]
            for length in {step["lease_ms"] for step in due}:
                some = {step["msg_id"]: step for step in due if step["lease_ms"] == length}
                asked = time.monotonic()
                try:
                    answers = self.call("extend", length / 3000, leases=[step.lease() for step in some.values()], lease_ms=length)
                except UNANSWERED:
                    for step in some.values():
                        if time.monotonic() >= step.over_at:  # somebody else may have it
                            step.unwanted.set()
                    continue
                for answer in answers:
                    step = some[answer["msg_id"]]
                    step.extended(asked)
                    if answer["status"] != "extended":
                        step.unwanted.set()

    def stop(self):
        """Lets handlers finish, then hands back what is left."""
        deadline = time.monotonic() + self.grace
        while time.monotonic() < deadline and self.held:
            time.sleep(0.02)
        with self.lock:
            left = list(self.held.values())
        for step in left:
            step.unwanted.set()
        if left:
            try:
                self.call("release", leases=[step.lease() for step in left])
            except UNANSWERED as problem:  # they come back when their leases end
                print(f"{self.name}: giving steps back: {problem}", file=sys.stderr)


if __name__ == "__main__":
    Worker(sys.argv[1], {"greet": lambda step: f"Hello, {step['input']['name']}!"}).run()
