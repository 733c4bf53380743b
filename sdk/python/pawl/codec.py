"""Values to JSON and back: what the database would refuse is refused here, with an error that says where.

Errors name fields and kinds of JSON, and hold no values.
"""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from .errors import InvalidBody

MAX_BODY = 1 << 20  # bytes of a body
MAX_DEPTH = 64  # nested arrays and objects
MAX_NUMBER = 64  # characters of a number literal

_LONG_NUMBER = re.compile(r"[0-9]{%d}" % (MAX_NUMBER - 1))


def encode(value: Any) -> str:
    """JSON text of a value: what json knows, dataclasses, pydantic models, enums, dates, UUIDs, Decimals (as text), sets.

    Raises InvalidBody for what Postgres' jsonb or the engine's limits would refuse.
    """
    try:
        text = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise InvalidBody(f"it is nested more than {MAX_DEPTH} deep, or contains itself") from None
    except TypeError as problem:
        raise InvalidBody(str(problem)) from None
    except ValueError:
        raise InvalidBody("it contains itself, or a number that JSON does not have (NaN, Infinity)") from None
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidBody("a text has half of a surrogate pair, which jsonb cannot store") from None
    if size > MAX_BODY:
        raise InvalidBody(f"it has {size} bytes as JSON, over the limit of {MAX_BODY}: store it elsewhere and pass a reference")
    # The cheap questions first: only what looks suspicious is walked through.
    if "\\u0000" in text or text.count("[") + text.count("{") > MAX_DEPTH or _LONG_NUMBER.search(text):
        _check(json.loads(text), 1)
    return text


class Number(float):
    """A JSON number that a float does not hold exactly, with its text; str() gives that."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str | float) -> Number:
        number = super().__new__(cls, text)
        number.text = str(text)
        return number

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Any:
    """The value of a JSON text of the database, whose numbers may have more digits than int() takes, or a float holds."""
    try:
        return json.loads(text, parse_float=_fraction)
    except ValueError:
        return json.loads(text, parse_float=_fraction, parse_int=_integer)


_EXACT = 16  # characters of a fraction without an exponent that a float holds, whatever they are


def _fraction(text: str) -> float:
    value = float(text)
    exact = len(text) <= _EXACT and "e" not in text and "E" not in text or Decimal(text) == Decimal(repr(value))
    return value if exact else Number(text)


_CHUNK = 600  # digits that int() takes whatever its limit is set to


def _integer(digits: str) -> int:
    negative, digits, value = digits.startswith("-"), digits.lstrip("-"), 0
    for at in range(0, len(digits), _CHUNK):
        chunk = digits[at : at + _CHUNK]
        value = value * 10 ** len(chunk) + int(chunk)
    return -value if negative else value


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidBody("a text has a NUL character (\\u0000), which jsonb cannot store")
    elif isinstance(value, (dict, list)):
        if depth > MAX_DEPTH:
            raise InvalidBody(f"it is nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            for key in value:
                _check(key, depth)
            value = value.values()
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, int) and len(str(value)) > MAX_NUMBER:
        raise InvalidBody(f"a number has more than {MAX_NUMBER} characters")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):  # pydantic 2
        return dump(mode="json")
    if callable(getattr(type(value), "parse_obj", None)):  # pydantic 1
        return json.loads(value.json())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def clean(text: str, limit: int) -> str:
    """A text that the database stores, of at most so many bytes."""
    text = text.replace("\x00", "\ufffd")
    raw = text.encode("utf-8", "replace")
    if len(raw) > limit:
        return raw[:limit].decode("utf-8", "ignore") + "…"
    return raw.decode("utf-8")
