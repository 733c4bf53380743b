"""The examples run."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pawl

from .support import DEADLINE, SDK, Case

SHOP = """
create schema if not exists shop;
create table if not exists shop.messages (token text primary key, order_id text not null, body text not null);
create table if not exists shop.calls (call_id bigint primary key generated always as identity, service text not null,
  token text not null, order_id text not null);
"""


class ExamplesTest(Case):
    def run_program(self, *words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=SDK / "examples", env=self.server.environment, capture_output=True, text=True, timeout=2 * DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_mails(self) -> None:
        self.db.execute(SHOP)
        order_id = uuid.uuid4().hex
        worker = self.worker()
        worker.handler("charges")(lambda order: {"amount_cents": 1205})
        self.start(worker)
        reference = self.template(
            {"name": "charge", "handler": "charges"}, {"name": "notify", "handler": "shop.notify", "queue": "shop_mails", "needs": [0]},
        )  # fmt: skip
        sent = self.client.submit(reference, {"order_id": order_id})
        process = subprocess.Popen([sys.executable, "-m", "pawl", "worker", "mails:worker", "--log", "error", "--until-eof"], cwd=SDK / "examples", env=self.server.environment, stdin=subprocess.PIPE)
        try:
            self.assertEqual(self.client.wait(sent, DEADLINE).result, {"sent": True})
        finally:
            process.stdin.close()
            self.assertEqual(process.wait(DEADLINE), 0)
        body = self.value("select body from shop.messages where order_id = %s", order_id)
        self.assertEqual(body, f"Order {order_id}: 12.05 EUR paid, your parcel is on its way.")

    def test_transfer(self) -> None:
        output = self.run_program("transfer.py")
        self.assertIn("booked: (3, Decimal('1649'))", output)
        again = self.run_program("transfer.py")
        self.assertIn("booked: (6, Decimal('3298'))", again)

    def test_handlers_are_tested_without_a_database(self) -> None:
        sys.path.insert(0, str(SDK / "examples"))
        self.addCleanup(sys.path.remove, str(SDK / "examples"))
        self.db.execute(SHOP)
        import mails

        from pawl.testing import run_handler

        mails.worker.database_url = self.url
        outcome = run_handler(mails.worker, "shop.notify", {"order_id": "x"}, token=uuid.uuid4().hex, dependencies={"charge": {"amount_cents": 5}})
        self.assertEqual(outcome.result, {"sent": True}, outcome)
        self.assertIsInstance(mails.worker, pawl.Worker)
