"""Exactly once, on both sides: the producer's row and its task commit together, and so do the worker's row and its result.

    python3 transfer.py            # submits, works, prints the balances
"""

import sys
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict

import pawl

URL = pawl.find_url()
worker = pawl.Worker("bank_queue")

TABLES = """
create schema if not exists bank;
create table if not exists bank.transfers (id bigint primary key generated always as identity, cents bigint not null);
create table if not exists bank.bookings (transfer_id bigint not null, cents bigint not null);  -- no unique key, on purpose
select pawl.configure_queue('bank_queue', '{}', 'examples/transfer.py', 'the queue of the example');
"""


@dataclass
class Transfer:
    id: int
    cents: int


@worker.handler("bank.book")
def book(transfer: Transfer, step: pawl.Step) -> None:
    with psycopg.connect(URL) as connection:
        connection.execute("insert into bank.bookings values (%s, %s)", (transfer.id, transfer.cents))
        step.complete_in(connection, {"booked": transfer.cents})


def main() -> None:
    with pawl.Client(URL) as client, psycopg.connect(URL) as connection:
        connection.execute(TABLES)
        sent = []
        for cents in (1250, 300, 99):
            row = connection.execute("insert into bank.transfers (cents) values (%s) returning id", (cents,)).fetchone()
            request = {"id": row[0], "cents": cents}
            sent.append(client.enqueue("bank.book", request, namespace="bank", key=str(row[0]), connection=connection))
        connection.commit()  # the transfers and their tasks, together
        worker.start()
        try:
            for one in sent:
                print(client.wait(one, 60).result)
        finally:
            worker.stop()
        print("booked:", connection.execute("select count(*), sum(cents) from bank.bookings").fetchone())


if __name__ == "__main__":
    try:
        conninfo_to_dict(URL)
    except psycopg.ProgrammingError:  # its text holds the URL, and with it a password
        sys.exit("transfer: PAWL_DATABASE_URL is not a connection string: postgres://user:password@host:5432/database")
    try:
        main()
    except psycopg.OperationalError as problem:
        sys.exit(f"transfer: {' '.join(str(problem).split())} Check PAWL_DATABASE_URL, or start a database with `pawl dev`.")
