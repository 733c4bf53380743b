"""Writes to the customers of shop/fulfil_order, on the queue shop_mails: at most one message a step, whoever is killed.

    python3 -m pawl worker mails:worker
"""

import os
import random
import time
from dataclasses import dataclass

import psycopg

import pawl

worker = pawl.Worker({"shop_mails": 8})
LATENCY = float(os.environ.get("SHOP_LATENCY_MS", "20")) / 1000


@dataclass
class Order:
    order_id: str


@dataclass
class Charged:
    amount_cents: int


@worker.handler("shop.notify")
def notify(order: Order, step: pawl.Step) -> dict[str, bool]:
    charged = step.dependency("charge", Charged)
    with psycopg.connect(pawl.find_url(worker.database_url), autocommit=True) as connection:
        # The mail service hears every call, a repeated one too; the token tells it which are the same.
        connection.execute("insert into shop.calls (service, token, order_id) values ('mail', %s, %s)", (step.token, order.order_id))
        euros, cents = divmod(charged.amount_cents, 100)
        body = f"Order {order.order_id}: {euros}.{cents:02d} EUR paid, your parcel is on its way."
        connection.execute(
            "insert into shop.messages (token, order_id, body) values (%s, %s, %s) on conflict do nothing",
            (step.token, order.order_id, body),
        )
    time.sleep(LATENCY * random.uniform(1, 3))  # as a service would take
    return {"sent": True}
