"""A worker that talks HTTP to an orchestrator: level 3 of docs/workers.md, with nothing but Python's standard library.

    PAWL_URL=http://orchestrator:8080 PAWL_TOKEN=… python3 worker.py QUEUE

For places without access to the database. A real worker in Python uses sdk/python; this shows the calls.
"""

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


class Failure(Exception):
    """Ends a handler as failed (tried again, not before `after` seconds), permanently failed, or rejected."""

    def __init__(self, message, type="error", retryable=True, rejected=False, after=None):
        super().__init__(message)
        self.type, self.retryable, self.rejected, self.after = type, retryable, rejected, after


class Step(dict):
    """What the claim gave, and `unwanted`: set when the work is cancelled, timed out or lost, or the worker stops."""

    def __init__(self, claimed):
        super().__init__(claimed)
        self.unwanted = threading.Event()
        self.beat_at = time.monotonic() + self["lease_ms"] / 3000

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

    def call(self, what, **body):
        """One call of the worker API. What cannot be answered now is asked again: every call may be repeated."""
        request = urllib.request.Request(
            f"{os.environ['PAWL_URL']}/v1/worker/{what}",
            json.dumps({"queue": self.queue, "worker": self.name, **body}).encode(),
            {"Authorization": f"Bearer {os.environ['PAWL_TOKEN']}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
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
            except (urllib.error.URLError, OSError) as problem:
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
        claimed = []
        try:
            if slots:
                claimed = self.call("claim", quantity=slots)
            for one in claimed:
                step = Step(one)
                with self.lock:
                    self.held[step["msg_id"]] = step
                threading.Thread(target=self.work, args=(step,), daemon=True).start()
        finally:
            for _ in range(slots - len(claimed)):
                self.free.release()
        return len(claimed)

    def work(self, step):
        report = {**step.lease(), **self.outcome(step)}
        if not (self.stopping.is_set() and step.unwanted.is_set()):  # else stop releases it
            self.report(report)
            with self.lock:
                self.held.pop(step["msg_id"], None)
        self.free.release()

    def outcome(self, step):
        """What to report of a step."""
        try:
            handler = self.handlers.get(step["handler"])
            if handler is None:
                raise Failure("this worker has no such handler", "unknown_handler")
            return {"status": "complete", "result": handler(step)}
        except Failure as failure:
            error = {"type": failure.type, "message": str(failure), "retryable": failure.retryable}
            if failure.after is not None:
                error["retry_after"] = failure.after
            return {"status": "rejected" if failure.rejected else "failed", "error": error}
        except Exception as problem:  # whatever a handler raises fails its attempt
            return {"status": "failed", "error": {"type": type(problem).__name__, "message": str(problem), "retryable": True}}

    def report(self, report):
        while True:
            try:
                self.call("report", reports=[report])
                return
            except urllib.error.HTTPError as problem:
                if problem.code not in (400, 413):  # the orchestrator cannot do it now
                    time.sleep(0.5)
                    continue
                # It refuses the result itself, and says where; the step fails in its place.
                message = json.load(problem).get("message", "the result was refused")
                report = {k: report[k] for k in ("msg_id", "read_ct")}
                report |= {"status": "failed", "error": {"type": "invalid_result", "message": message, "retryable": False}}
            except OSError:
                time.sleep(0.5)

    def beat(self):
        """Extends leases when a third of them is over, and tells handlers whose work is no longer wanted."""
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            with self.lock:
                due = [step for step in self.held.values() if now >= step.beat_at]
            for length in {step["lease_ms"] for step in due}:
                some = {step["msg_id"]: step for step in due if step["lease_ms"] == length}
                try:
                    answers = self.call("extend", leases=[step.lease() for step in some.values()], lease_ms=length)
                except OSError:
                    continue
                for answer in answers:
                    step = some[answer["msg_id"]]
                    step.beat_at = now + length / 3000
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
            self.call("release", leases=[step.lease() for step in left])


if __name__ == "__main__":
    Worker(sys.argv[1], {"greet": lambda step: f"Hello, {step['input']['name']}!"}).run()
