"""JSON into what a handler's type hints ask for: dataclasses, pydantic models if there are any, and the types of `typing`."""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import lru_cache
from typing import Any, Callable, Literal, Union
from uuid import UUID


# What is made of arrays and objects, by what is asked for.
_CONTAINERS: dict[type, Any] = {kind: kind for kind in (list, set, frozenset, tuple, dict)}
_CONTAINERS |= {kind: list for kind in (collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection, collections.abc.Iterable)}
_CONTAINERS |= {collections.abc.Set: frozenset, collections.abc.MutableSet: set, collections.abc.Mapping: dict, collections.abc.MutableMapping: dict}
_SCALARS = (datetime, date, time, UUID, Decimal)
_KINDS = (dict, list, str, int, float, bool, type(None))  # of JSON values


class Mismatch(ValueError):
    """The JSON does not have the wanted form. The text names the field and holds no values."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"field {path!r} {reason}" if path else f"it {reason}")
        self.path = path


def decode(value: Any, wanted: Any, *, refuse_unknown: bool = False, path: str = "") -> Any:
    """Makes of a JSON value what ``wanted`` asks for. Raises Mismatch."""
    if wanted is Any or wanted is object or wanted is None and value is None:
        return value
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired):
        return decode(value, arguments[0], refuse_unknown=refuse_unknown, path=path)
    if origin in (Union, types.UnionType):
        return _union(value, arguments, refuse_unknown, path)
    if origin is Literal:
        if any(value == one and type(value) is type(one) for one in arguments):
            return value
        raise Mismatch(path, "is none of " + ", ".join(map(repr, arguments)))
    again = lambda item, kind, name: decode(item, kind, refuse_unknown=refuse_unknown, path=name)  # noqa: E731
    wanted = origin or wanted  # of a generic class
    if not isinstance(wanted, type):
        return value  # a type variable: nothing that JSON could be held against
    container = _CONTAINERS.get(wanted)
    if container is dict:
        _want(value, dict, "an object", path)
        kind = arguments[1] if arguments else Any
        return {key: again(item, kind, _join(path, key)) for key, item in value.items()}
    if container is not None:
        return _array(value, container, arguments, path, again)
    if dataclasses.is_dataclass(wanted):
        return _dataclass(value, wanted, refuse_unknown, path)
    if _is_pydantic(wanted):
        return _pydantic(value, wanted, path)
    if typing.is_typeddict(wanted):
        return _typed_dict(value, wanted, refuse_unknown, path)
    return _scalar(value, wanted, path)


def unreadable(wanted: Any, path: str = "", seen: tuple[Any, ...] = ()) -> str | None:
    """The class in a type hint into which no JSON value is read, and the field that wants it; None when there is none. Fields
    with a default need not be there, so they are not looked at."""
    if wanted is Any:
        return None
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired):
        return unreadable(arguments[0], path, seen)
    if origin in (Union, types.UnionType):  # one that is read is enough: a function may take more than handlers need
        found = [unreadable(one, path, seen) for one in arguments if one is not type(None)]
        return found[0] if found and all(found) else None
    name, wanted = getattr(wanted, "__name__", str(wanted)), origin or wanted
    if not isinstance(wanted, type) or wanted in seen or _is_pydantic(wanted):
        return None
    if (container := _CONTAINERS.get(wanted)) is not None:
        kinds = arguments[1:] if container is dict else arguments
        return next((found for kind in kinds if (found := unreadable(kind, path, seen))), None)
    if dataclasses.is_dataclass(wanted) or typing.is_typeddict(wanted):
        try:
            hints = _hints(wanted)
        except NameError:  # of a class that is yet to be defined
            return None
        fields = ((field, unreadable(hints[field], _join(path, field), (*seen, wanted))) for field in _required(wanted))
        return next((found for _, found in fields if found), None)
    if wanted in _SCALARS or issubclass(wanted, Enum) or any(_is(kind, wanted, issubclass) for kind in _KINDS):
        return None
    return f"{name}, as field {path!r} is annotated" if path else name


def kind_of(value: Any) -> str:
    """The JSON kind of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "an object", list: "an array", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _want(value: Any, kind: Any, name: str, path: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
        raise Mismatch(path, f"is {kind_of(value)}, and the handler wants {name}")


def _union(value: Any, arguments: tuple[Any, ...], refuse_unknown: bool, path: str) -> Any:
    if value is None and type(None) in arguments:
        return None
    problem: Mismatch | None = None
    kinds = [one for one in arguments if one is not type(None)]
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
        return tuple(again(item, kind, _join(path, i)) for i, (item, kind) in enumerate(zip(value, arguments)))
    kind = arguments[0] if arguments else Any
    items = [again(item, kind, _join(path, i)) for i, item in enumerate(value)]
    try:
        return origin(items)
    except TypeError:
        raise Mismatch(path, "has elements that no set can hold") from None


@lru_cache(maxsize=1024)
def _hints(wanted: type) -> dict[str, Any]:
    return typing.get_type_hints(wanted, include_extras=True)


def _required(wanted: Any) -> list[str]:
    """The names of the fields that must be there, of a dataclass or a TypedDict."""
    if typing.is_typeddict(wanted):
        hints = _hints(wanted)  # the class does not know of NotRequired where annotations are texts
        return [name for name in wanted.__required_keys__ if typing.get_origin(hints[name]) is not typing.NotRequired]
    missing = dataclasses.MISSING
    return [field.name for field in dataclasses.fields(wanted) if field.init and field.default is missing and field.default_factory is missing]


def _dataclass(value: Any, wanted: Any, refuse_unknown: bool, path: str) -> Any:
    _want(value, dict, "an object", path)
    hints, arguments = _hints(wanted), {}
    fields = [field for field in dataclasses.fields(wanted) if field.init]
    for field in fields:
        name = _join(path, field.name)
        if field.name in value:
            arguments[field.name] = decode(value[field.name], hints[field.name], refuse_unknown=refuse_unknown, path=name)
        elif field.name in _required(wanted):
            raise Mismatch(name, "is missing")
    if refuse_unknown:
        _refuse_unknown(value, {field.name for field in fields}, path)
    return wanted(**arguments)


def _typed_dict(value: Any, wanted: Any, refuse_unknown: bool, path: str) -> Any:
    _want(value, dict, "an object", path)
    hints = _hints(wanted)
    for name in _required(wanted):
        if name not in value:
            raise Mismatch(_join(path, name), "is missing")
    if refuse_unknown:
        _refuse_unknown(value, set(hints), path)
    return {key: decode(item, hints.get(key, Any), refuse_unknown=refuse_unknown, path=_join(path, key)) for key, item in value.items()}


def _refuse_unknown(value: dict[str, Any], known: set[str], path: str) -> None:
    for name in value:
        if name not in known:
            raise Mismatch(_join(path, name), "is not known to the handler")


def _is_pydantic(wanted: Any) -> bool:
    return callable(getattr(wanted, "model_validate", None)) or callable(getattr(wanted, "parse_obj", None))


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
            where = _join(where, part)
        raise Mismatch(where, f"does not fit {wanted.__name__} ({first.get('type', 'invalid')})") from None


def _scalar(value: Any, wanted: Any, path: str) -> Any:
    if wanted is str:
        _want(value, str, "a string", path)
    elif wanted is bool:
        _want(value, bool, "a boolean", path)
    elif wanted is int:
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 3.0 is the same number as 3 in JSON
        _want(value, int, "a whole number", path)
    elif wanted is float:
        _want(value, (int, float), "a number", path)
        try:
            return float(value)
        except OverflowError:
            raise Mismatch(path, "is a number that a float cannot hold") from None
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
            return Decimal(value if isinstance(value, int) else str(value))  # a text of an int has a limit
        except InvalidOperation:
            raise Mismatch(path, "is no decimal number") from None
    elif wanted in (datetime, date, time, UUID):
        _want(value, str, "a string", path)
        try:
            return UUID(value) if wanted is UUID else wanted.fromisoformat(value)
        except ValueError:
            raise Mismatch(path, f"is no {wanted.__name__}") from None
    elif not _is(value, wanted, isinstance):
        raise Mismatch(path, f"is {kind_of(value)}, and the handler wants {wanted.__name__}, into which JSON is not read")
    return value


def _is(value: Any, wanted: Any, asked: Callable[[Any, Any], bool]) -> bool:
    try:
        return asked(value, wanted)
    except TypeError:  # a protocol that cannot be asked for
        return True
