"""The scripts of docs/workers.md and the handlers of docs/templates.md, taken from the pages, against a real orchestrator."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import pawl

from .support import DEADLINE, ROOT, Case

PAGE = (ROOT / "docs" / "workers.md").read_text()


def block(name: str) -> str:
    return next(text for text in re.findall(r"```\w+\n(.*?)```", PAGE, re.S) if name in "".join(text.splitlines(True)[:2]))


@dataclass
class Order:
    order_id: str
    parcels: list[str]


class TemplatesDocTest(Case):
    def test_as_many_as_the_input_says(self) -> None:
        page = (ROOT / "docs" / "templates.md").read_text()
        source = next(text for text in re.findall(r"```python\n(.*?)```", page, re.S))
        parts = self.queue + "p"
        self.db.execute("select pawl.install_queue(%s)", (parts,))
        worker = self.worker(queues={self.queue: 1, parts: 1})
        exec(source.replace("shop_packing", parts), {"pawl": pawl, "worker": worker, "client": self.client, "Order": Order})

        @worker.handler("shop.pack")
        def pack(part: dict[str, str]) -> str:
            if part["parcel"] == "broken":
                raise pawl.Permanent("it is broken")
            return "label of " + part["parcel"]

        self.start(worker)
        reference = self.template({"name": "ship", "handler": "shop.ship"}, {"name": "shipped", "handler": "shop.shipped", "needs": [0], "retry": {"max_attempts": 1}})
        for _ in range(2):  # the second meets the parts of the first
            order = self.client.submit(reference, {"order_id": self.queue, "parcels": ["tea", "cups", "spoons"]})
            self.assertEqual(self.client.wait(order, DEADLINE).result, ["label of tea", "label of cups", "label of spoons"])
        self.assertEqual(self.value("select count(*) from pawl.tasks where key like %s", self.queue + "/%"), 3)
        with self.assertRaises(pawl.TaskFailed):
            self.client.wait(self.client.submit(reference, {"order_id": self.queue, "parcels": ["tea", "broken"]}), DEADLINE)


class WorkersDocTest(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.environment = self.server.environment

    def begin(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        (self.folder / name).write_text(block(name))
        process = subprocess.Popen(["bash", name, self.queue, *command], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL, start_new_session=True)

        def end() -> None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait(DEADLINE)

        self.addCleanup(end)
        return process

    def works(self, name: str) -> None:
        # Upper case of what comes; what says "fail" fails.
        (self.folder / "handle").write_text('input=$(cat)\ncase $input in *fail*) exit 3;; *junk*) echo "no { json";; *) tr a-z A-Z <<<"$input";; esac\n')
        self.begin(name, "bash", "handle")
        self.assertEqual(self.run_one("upper", "grüße | \\ \" 'x'").result, "GRüßE | \\ \" 'X'")
        large = [f"x{(i * 7919) % 99991}" for i in range(20_000)]
        self.assertEqual(self.run_one("upper", large).result, [text.upper() for text in large])
        compressible = "a" * 300_000  # large as text, small as stored
        self.assertEqual(self.run_one("upper", compressible).result, compressible.upper())
        for bad in ("fail", "junk"):
            reference = self.template({"name": "run", "handler": "upper", "retry": {"base_ms": 1, "max_attempts": 2}})
            sent = self.client.submit(reference, {"how": bad})
            with self.assertRaises(pawl.TaskFailed):
                self.client.wait(sent, DEADLINE)
            self.assertEqual(self.step_of(sent)["error"]["type"], "command_failed")
        self.until(lambda: self.value(f"select count(*) from pgmq.q_{self.queue}") == 0, "the queue is empty")

    def test_level_1_with_the_grants_of_the_page(self) -> None:
        url, role = self.login()
        self.environment = self.server.environment | {"PAWL_DATABASE_URL": url}
        self.db.execute(block("grant usage on schema pgmq, pawl").replace("shop_queue", self.queue).replace("my_role", role))
        self.begin("level1.sh", "tr", "a-z", "A-Z")
        self.assertEqual(self.run_one("upper", "abc").result, "ABC")
        large = [f"X{(i * 7919) % 99991}" for i in range(20_000)]
        self.assertEqual(self.run_one("upper", large).result, large)

    def test_level_1(self) -> None:
        self.works("level1.sh")

    def test_level_2(self) -> None:
        self.works("level2.sh")

    def test_level_2_hands_back_on_sigterm(self) -> None:
        sent = self.enqueue("sleeps")
        process = self.begin("level2.sh", "sh", "-c", "touch running; sleep 600")
        self.until((self.folder / "running").exists, "the command runs")
        process.terminate()
        self.assertEqual(process.wait(DEADLINE), 0)
        self.assertEqual(self.value(f"select count(*) from pgmq.q_{self.queue} where vt <= clock_timestamp()"), 1)
        self.assertEqual(self.step_of(sent)["state"], "in_progress")

    def test_level_2_tells_the_command_of_a_cancel(self) -> None:
        text = block("level2.sh").replace("sleep 10", "sleep 0.2")
        (self.folder / "quick.sh").write_text(text)
        sent = self.enqueue("sleeps")
        process = subprocess.Popen(["bash", "quick.sh", self.queue, "sh", "-c", "touch running; exec sleep 600"], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait, DEADLINE)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        self.until((self.folder / "running").exists, "the command runs")
        self.client.cancel(sent, actor="test", reason="a test")
        self.until(lambda: self.value(f"select count(*) from pgmq.q_{self.queue}") == 0, "the command was stopped and reported")
        self.assertIsNone(process.poll())

    def test_a_worker_in_a_minute(self) -> None:
        (self.folder / "greet.py").write_text(block("# greet.py"))
        command = [sys.executable, "-m", "pawl"]
        enqueue = [*command, "enqueue", "greet", '{"name": "Ada"}', "--queue", "greetings_queue"]
        subprocess.run(enqueue, cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        self.until(lambda: self.value("select count(*) from pgmq.meta where queue_name = 'greetings_queue'"), "there is the queue")
        worker = subprocess.Popen([*command, "worker", "greet:worker", "--log", "error", "--until-eof"], cwd=self.folder, env=self.environment, stdin=subprocess.PIPE)
        try:
            done = subprocess.run([*enqueue, "--wait"], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=DEADLINE)
        finally:
            worker.stdin.close()
            self.assertEqual(worker.wait(DEADLINE), 0)
        self.assertIn("Hello, Ada!", done.stdout)

    def test_level_2_in_sql(self) -> None:
        sent = self.enqueue("by_hand", {"a": 1})
        self.until(lambda: self.step_of(sent), "there is a step")
        text = block("-- level2.sql").replace("demo_queue", self.queue)
        done = subprocess.run(["psql", self.url, "-XqAt", "-v", "ON_ERROR_STOP=1"], input=text, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"handler": "by_hand"', done.stdout)
        extended, accepted, late = done.stdout.splitlines()[-3:]
        self.assertIn('"status" : "extended"', extended)
        self.assertIn('"accepted" : true', accepted)
        self.assertIn('"accepted" : false', late)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, {"done": True})

    @unittest.skipUnless(shutil.which("curl") and shutil.which("jq"), "curl or jq is not installed")
    def test_level_3(self) -> None:
        self.works("level3.sh")
