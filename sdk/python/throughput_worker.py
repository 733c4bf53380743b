"""The worker of `make throughput` for Python: its handler does nothing. With --async it is one of asyncio."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import psycopg  # noqa: E402

import pawl  # noqa: E402

worker = pawl.Worker({os.environ["PAWL_QUEUE"]: int(os.environ["PAWL_CONCURRENCY"])})

if "--async" in sys.argv:

    @worker.handler("nothing")
    async def nothing(step: pawl.Step) -> None:
        pass
else:

    @worker.handler("nothing")
    def nothing(step: pawl.Step) -> None:
        pass


try:
    worker.run()
except (pawl.PawlError, psycopg.Error) as problem:
    sys.exit(f"throughput_worker: {problem}")
