"""Names that are checked before the database sees them."""

from __future__ import annotations

import re

from .errors import ConfigError

_QUEUE = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_step_queue(name: object) -> None:
    """Refuses what cannot be a queue of steps or replies."""
    if not isinstance(name, str) or not _QUEUE.fullmatch(name):
        raise ConfigError(f"bad queue name {name!r}: 1 to 40 of a-z, 0-9 and _, beginning with a letter")
    if name.startswith("orchestration_"):
        raise ConfigError(f"queue name {name!r} begins with orchestration_, which is for the engine's own queues: choose another name")
