"""Steps per second of one worker process with handlers that do nothing. Needs a database with an orchestrator.

    python3 throughput.py [--steps 20000] [--concurrency 200] [--async]

The steps are ready before the clock starts; it stops when the last one is complete.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psycopg  # noqa: E402

import pawl  # noqa: E402
from pawl.database import find_url  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database-url")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--async", dest="asynchronous", action="store_true", help="asyncio handlers instead of threads")
    options = parser.parse_args()
    url = pawl.find_url(options.database_url)
    queue = "throughput_" + uuid.uuid4().hex[:8]
    worker = pawl.Worker({queue: options.concurrency}, database_url=url)
    if options.asynchronous:

        @worker.handler("nothing")
        async def nothing(step: pawl.Step) -> None:
            pass
    else:

        @worker.handler("nothing")
        def nothing(step: pawl.Step) -> None:
            pass

    with psycopg.connect(url, autocommit=True) as connection, pawl.Client(url) as client:
        count = lambda sql: connection.execute(sql, (queue,)).fetchone()[0]  # noqa: E731
        for first in range(0, options.steps, 1000):
            client.submit_many(pawl.Request(handler="nothing", queue=queue) for _ in range(first, min(first + 1000, options.steps)))
        while count("select count(*) from pawl.steps where queue = %s and state = 'enqueued'") < options.steps:
            time.sleep(0.1)
        began = time.monotonic()
        worker.start()
        while count("select count(*) from pawl.steps where queue = %s and state <> 'complete'") > 0:
            time.sleep(0.1)
        seconds = time.monotonic() - began
        worker.stop()
    kind = "asyncio" if options.asynchronous else "threads"
    print(f"{options.steps / seconds:,.0f} steps/s: {options.steps} steps in {seconds:.1f} s, {kind}, concurrency {options.concurrency}, "
        f"Python {platform.python_version()}, psycopg {psycopg.__version__} ({psycopg.pq.__impl__})")  # fmt: skip


if __name__ == "__main__":
    main()
