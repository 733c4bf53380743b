"""JSON into what a handler's type hints ask for: dataclasses, pydantic models if there are any, and the types of `typing`."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Literal
from uuid import UUID

from .codec import Number, parse
from .hints import CONTAINERS, KEYS, bare, hints_of, holds, is_pydantic, is_union, join, required

_MAX_DIGITS = 20_000  # of a whole number
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")  # of JSON


class Mismatch(ValueError):
    """The JSON does not have the wanted form. The text names the field and holds no values."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"field {path!r} {reason}" if path else f"it {reason}")
        self.path = path


def decode(value: Any, wanted: Any, *, refuse_unknown: bool = False, path: str = "") -> Any:
    """Makes of a JSON value what ``wanted`` asks for. Raises Mismatch."""
    wanted = bare(wanted)
    if wanted is Any or wanted is object or wanted is None and value is None:
        return value
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if is_union(wanted):
        return _union(value, arguments, refuse_unknown, path)
    if origin is Literal:
        if any(value == one and type(value) is type(one) for one in arguments):
            return value
        raise Mismatch(path, "is none of " + ", ".join(map(repr, arguments)))
    again = lambda item, kind, name: decode(item, kind, refuse_unknown=refuse_unknown, path=name)  # noqa: E731
    wanted = origin or wanted  # of a generic class
    if not isinstance(wanted, type):
        raise Mismatch(path, f"is {kind_of(value)}, and the handler wants {wanted}, into which JSON is not read")
    container = CONTAINERS.get(wanted)
    if container is dict:
        _want(value, dict, "an object", path)
        keys, kind = arguments if len(arguments) == 2 else (Any, Any)
        items = {_key(key, keys, join(path, key)): again(item, kind, join(path, key)) for key, item in value.items()}
        if len(items) < len(value):
            raise Mismatch(path, "has two keys that are the same to the handler")
        return items
    if container is not None:
        return _array(value, container, arguments, path, again)
    if dataclasses.is_dataclass(wanted):
        return _dataclass(value, wanted, arguments, refuse_unknown, path)
    if is_pydantic(wanted):
        return _pydantic(value, wanted, path)
    if typing.is_typeddict(wanted):
        return _typed_dict(value, wanted, arguments, refuse_unknown, path)
    return _scalar(value, wanted, path)


def kind_of(value: Any) -> str:
    """The JSON kind of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number", Number: "a number"}
    return names.get(type(value), type(value).__name__)


def _want(value: Any, kind: Any, name: str, path: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise Mismatch(path, f"is {kind_of(value)}, and the handler wants {name}")


def _union(value: Any, arguments: tuple[Any, ...], refuse_unknown: bool, path: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    problem: Mismatch | None = None
    kinds = [one for one in arguments if one is not type(None)]
    if isinstance(value, (int, Number)):  # a float may be another number
        kinds.sort(key=lambda one: bare(one) is float)
    for one in kinds:
        try:
            return decode(value, one, refuse_unknown=refuse_unknown, path=path)
        except Mismatch as mismatch:
            problem = mismatch
    if len(kinds) == 1 and problem:
        raise problem
    raise Mismatch(path, f"is {kind_of(value)}, and fits none of the types that the handler takes")


def _array(value: Any, origin: Any, arguments: tuple[Any, ...], path: str, again: Any) -> Any:
    _want(value, list, "an array", path)
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            raise Mismatch(path, f"has {len(value)} elements, and the handler wants {len(arguments)}")
        return tuple(again(item, kind, join(path, i)) for i, (item, kind) in enumerate(zip(value, arguments)))
    kind = arguments[0] if arguments else Any
    items = [again(item, kind, join(path, i)) for i, item in enumerate(value)]
    try:
        return origin(items)
    except TypeError:
        raise Mismatch(path, "has elements that no set can hold") from None


def _dataclass(value: Any, wanted: Any, of: tuple[Any, ...], refuse_unknown: bool, path: str) -> Any:
    _want(value, dict, "an object", path)
    hints, arguments = hints_of(wanted, of), {}
    fields = [field for field in dataclasses.fields(wanted) if field.init]
    for field in fields:
        name = join(path, field.name)
        if field.name in value:
            arguments[field.name] = decode(value[field.name], hints[field.name], refuse_unknown=refuse_unknown, path=name)
        elif field.name in required(wanted):
            raise Mismatch(name, "is missing")
    if refuse_unknown:
        _refuse_unknown(value, {field.name for field in fields}, path)
    return wanted(**arguments)


def _typed_dict(value: Any, wanted: Any, of: tuple[Any, ...], refuse_unknown: bool, path: str) -> Any:
    _want(value, dict, "an object", path)
    hints = hints_of(wanted, of)
    for name in required(wanted):
        if name not in value:
            raise Mismatch(join(path, name), "is missing")
    if refuse_unknown:
        _refuse_unknown(value, set(hints), path)
    return {key: decode(item, hints.get(key, Any), refuse_unknown=refuse_unknown, path=join(path, key)) for key, item in value.items()}


def _refuse_unknown(value: dict[str, Any], known: set[str], path: str) -> None:
    for name in value:
        if name not in known:
            raise Mismatch(join(path, name), "is not known to the handler")


def _pydantic(value: Any, wanted: Any, path: str) -> Any:
    validate = getattr(wanted, "model_validate", None) or wanted.parse_obj
    try:
        return validate(value)
    except ValueError as problem:  # pydantic's ValidationError is one
        errors = getattr(problem, "errors", None)
        if not callable(errors):
            raise
        first = errors()[0]
        where = path
        for part in first.get("loc", ()):
            where = join(where, part)
        raise Mismatch(where, f"does not fit {wanted.__name__} ({first.get('type', 'invalid')})") from None


def _key(key: str, wanted: Any, path: str) -> Any:
    """What the key of an object stands for."""
    wanted = bare(wanted)
    if wanted is Any:
        return key
    if is_union(wanted):
        for one in typing.get_args(wanted):
            try:
                return _key(key, one, path)
            except Mismatch:
                pass
    elif typing.get_origin(wanted) is Literal or isinstance(wanted, type) and issubclass(wanted, Enum):
        for value in (key, _number(key)):
            if value is None:
                continue
            try:
                return decode(value, wanted)
            except Mismatch:
                pass
    elif wanted is bool and key in ("true", "false"):
        return key == "true"
    elif wanted in (int, float, Decimal):
        if (number := _number(key)) is not None:
            return _scalar(number, wanted, path)
    elif wanted in KEYS and wanted is not bool:
        return _scalar(key, wanted, path)
    elif isinstance(wanted, type) and holds(str, wanted, issubclass):
        return key
    raise Mismatch(path, f"has a key that is no {getattr(wanted, '__name__', wanted)}")


def _number(key: str) -> Any:
    return parse(key) if _NUMBER.fullmatch(key) else None


def _exact(value: float) -> Decimal:
    """The number as the JSON has it."""
    return Decimal(value.text if isinstance(value, Number) else repr(value))


def _whole(value: float) -> int | None:
    exact = _exact(value)
    if not exact.is_finite() or exact.adjusted() > _MAX_DIGITS or exact != exact.to_integral_value():
        return None
    return int(exact)


def _scalar(value: Any, wanted: Any, path: str) -> Any:
    if wanted is str:
        _want(value, str, "a string", path)
    elif wanted is bool:
        _want(value, bool, "a boolean", path)
    elif wanted is int:
        if isinstance(value, float) and (whole := _whole(value)) is not None:
            return whole  # 3.0 is the same number as 3 in JSON
        _want(value, int, "a whole number", path)
    elif wanted is float:
        _want(value, (int, float), "a number", path)
        try:
            if not math.isinf(number := float(value)):
                return number
        except OverflowError:
            pass
        raise Mismatch(path, "is a number that a float cannot hold")
    elif wanted is type(None):
        if value is not None:
            raise Mismatch(path, f"is {kind_of(value)}, and the handler wants null")
    elif issubclass(wanted, Enum):
        try:
            return wanted(value)
        except ValueError:
            raise Mismatch(path, f"is no {wanted.__name__}") from None
    elif wanted is Decimal:
        _want(value, (int, float, str), "a number", path)
        try:
            return _exact(value) if isinstance(value, float) else Decimal(value)
        except InvalidOperation:
            raise Mismatch(path, "is no decimal number") from None
    elif wanted in (datetime, date, time, UUID):
        _want(value, str, "a string", path)
        try:
            return UUID(value) if wanted is UUID else wanted.fromisoformat(value)
        except ValueError:
            raise Mismatch(path, f"is no {wanted.__name__}") from None
    elif not holds(value, wanted, isinstance):
        raise Mismatch(path, f"is {kind_of(value)}, and the handler wants {wanted.__name__}, into which JSON is not read")
    return value
