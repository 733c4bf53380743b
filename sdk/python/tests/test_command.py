"""python -m pawl, as a newcomer meets it: the README's first example, word by word; and how a worker's process ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pawl
from pawl import database

from .support import DEADLINE, SDK, Case


class CommandTest(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, command: str | list[str]) -> subprocess.CompletedProcess[str]:
        words = shlex.split(command) if isinstance(command, str) else command
        return subprocess.run(self.python(words), cwd=self.folder, env=self.server.environment, capture_output=True, text=True, timeout=DEADLINE)

    def begin(self, command: str | list[str], **options: object) -> subprocess.Popen[str]:
        words = shlex.split(command) if isinstance(command, str) else command
        process = subprocess.Popen(self.python(words), cwd=self.folder, env=self.server.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)

        def end() -> None:
            process.kill()
            process.wait(DEADLINE)
            process.stdout.close()

        self.addCleanup(end)
        return process

    @staticmethod
    def python(words: list[str]) -> list[str]:
        assert words[:3] == ["python3", "-m", "pawl"], words
        return [sys.executable, *words[1:]]

    def test_the_readmes_first_example_runs(self) -> None:
        text = (SDK / "README.md").read_text()
        code = re.search(r"```python\n# hello.py\n(.*?)```", text, re.S).group(1)
        self.assertLess(len([line for line in code.splitlines() if line.strip()]), 15)
        commands = re.search(r"```sh\n(python3 -m pawl enqueue .*?)```", text, re.S).group(1).splitlines()
        self.assertEqual(len(commands), 2)
        (self.folder / "hello.py").write_text(code)
        made = self.run_command(commands[0])
        self.assertEqual(made.returncode, 0, made.stderr)
        process = self.begin(commands[1])
        task = self.client.wait(made.stdout.strip(), DEADLINE)
        self.assertEqual(task.result, "Hello, Ada!")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE)
        self.assertIn("Hello, Ada!\n", output)
        self.assertEqual(process.returncode, 0, output)

    def test_a_worker_that_cannot_reach_its_database_says_so_in_one_line(self) -> None:
        self.worker_file()
        url = "postgres://ann:verysecret@127.0.0.1:1/shop"
        made = self.run_command(["python3", "-m", "pawl", "--database-url", url, "worker", "slow:worker"])
        self.assertEqual(made.returncode, 3, made.stderr)
        self.assertRegex(made.stderr, r"\Apawl: connecting to database shop at 127\.0\.0\.1:1: [^\n]*PAWL_DATABASE_URL[^\n]*\n\Z")
        self.assertNotIn("verysecret", made.stderr)
        url = "postgres//ann:verysecret@127.0.0.1:1/shop"
        made = self.run_command(["python3", "-m", "pawl", "--database-url", url, "worker", "slow:worker"])
        self.assertEqual(made.returncode, 2, made.stderr)
        self.assertRegex(made.stderr, r"\Apawl: reading the database URL: [^\n]*\n\Z")
        self.assertNotIn("verysecret", made.stderr)

    def worker_file(self) -> None:
        (self.folder / "slow.py").write_text(
            f"import time, pawl\nworker = pawl.Worker({self.queue!r}, grace=0.1)\n"
            "@worker.handler('slow')\ndef slow(step: pawl.Step):\n    print('running', flush=True)\n    time.sleep(600)\n"
        )

    def test_sigterm_hands_steps_back_at_once(self) -> None:
        self.worker_file()
        sent = self.enqueue("slow")
        process = self.begin("python3 -m pawl worker slow:worker --log error")
        self.assertEqual(process.stdout.readline(), "running\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 0)
        self.assertEqual(self.value(f"select count(*) from pgmq.q_{self.queue} where vt <= clock_timestamp()"), 1)
        self.assertEqual(self.step_of(sent)["state"], "in_progress")

    def test_a_killed_workers_step_comes_back(self) -> None:
        self.worker_file()
        sent = self.enqueue("slow")
        process = self.begin("python3 -m pawl worker slow:worker --log error")
        self.assertEqual(process.stdout.readline(), "running\n")
        process.kill()
        process.wait(DEADLINE)
        self.expire_lease(sent)
        worker = self.worker()
        worker.handler("slow")(lambda step: step.delivery)
        self.start(worker)
        self.assertEqual(self.client.wait(sent, DEADLINE).result, 2)

    def test_ends_with_its_input_when_told_so(self) -> None:
        self.worker_file()
        process = self.begin(["python3", "-m", "pawl", "worker", "slow:worker", "--until-eof"], stdin=subprocess.PIPE)
        for line in process.stdout:
            if "started" in line:
                break
        process.stdin.close()
        self.assertEqual(process.wait(DEADLINE), 0)

    def test_submits_and_prints_the_result(self) -> None:
        worker = self.worker()
        worker.handler("echo")(lambda value: value)
        self.start(worker)
        done = self.run_command(["python3", "-m", "pawl", "enqueue", "echo", '{"a": "ü"}', "--queue", self.queue, "--wait"])
        self.assertEqual(done.returncode, 0, done.stderr)
        task_id, result = done.stdout.splitlines()
        uuid.UUID(task_id)
        self.assertEqual(json.loads(result), {"status": "completed", "result": {"a": "ü"}})
        reference = self.template({"name": "run", "handler": "echo"})
        done = self.run_command(["python3", "-m", "pawl", "submit", reference, "[1]", "--wait", "60"])
        self.assertEqual(json.loads(done.stdout.splitlines()[1])["result"], [1])

    def test_says_when_there_is_no_database(self) -> None:
        self.worker_file()
        for command in ("worker slow:worker", "enqueue x"):
            with self.subTest(command):
                done = self.run_command("python3 -m pawl --database-url postgres://postgres@127.0.0.1:1/x " + command)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("connection", done.stderr)

    def test_says_what_to_do_about_a_psycopg_that_cannot_work(self) -> None:
        # As in a slim image, whose Python has psycopg and no libpq.
        (self.folder / "psycopg.py").write_text("raise ImportError('no pq wrapper available.')\n")
        environment = self.server.environment | {"PYTHONPATH": f"{self.folder}{os.pathsep}{SDK}"}
        done = subprocess.run([sys.executable, "-c", "import pawl"], env=environment, capture_output=True, text=True, timeout=DEADLINE)
        said = done.stderr.splitlines()[-1]
        for word in ("ImportError", "pawl[binary]", "libpq5", "no pq wrapper available"):
            self.assertIn(word, said)

    def test_the_url_of_pawl_dev_is_looked_for_on_systems_without_user_ids(self) -> None:
        others = {name: getattr(os, name) for name in dir(os) if name not in ("getuid", "geteuid")}
        others["environ"] = {"LOCALAPPDATA": str(self.folder)}
        with mock.patch.object(database, "os", SimpleNamespace(**others)):
            with self.assertRaises(pawl.ConfigError):
                pawl.find_url()
            (self.folder / "pawl").mkdir()
            (self.folder / "pawl" / "dev--1.url").write_text("postgres://dev\n")
            self.assertEqual(pawl.find_url(), "postgres://dev")

    def test_says_what_to_do_about_mistakes(self) -> None:
        (self.folder / "empty.py").write_text("import pawl\nworker = pawl.Worker('nobody_names_this')\n@worker.handler('x')\ndef x(): pass\n")
        for command, says in (
            ("worker no_such_module:worker", "there is no module"),
            ("worker json:worker", "has no worker"),
            ("worker empty:worker", "a first request for the queue makes it"),
            ("worker empty:worker --queue Bad-Name", "bad queue name"),
            ("enqueue x '{'", "no JSON"),
            ("enqueue x --queu y", "unrecognized arguments: --queu"),
            ("submit no_such/template", "no_such/template"),
        ):  # fmt: skip
            with self.subTest(command):
                done = self.run_command("python3 -m pawl " + command)
                self.assertEqual(done.returncode, 1 if "submit" in command else 2, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
