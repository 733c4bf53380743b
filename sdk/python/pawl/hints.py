"""Type hints: what they stand for, what a class wants of its fields, and which of them JSON is not read into."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
import typing
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Callable, Literal, TypeVar, Union
from uuid import UUID

# What is made of arrays and objects, by what is asked for.
CONTAINERS: dict[type, Any] = {kind: kind for kind in (list, set, frozenset, tuple, dict)}
CONTAINERS |= {kind: list for kind in (collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Collection, collections.abc.Iterable)}
CONTAINERS |= {collections.abc.Set: frozenset, collections.abc.MutableSet: set, collections.abc.Mapping: dict, collections.abc.MutableMapping: dict}
KEYS = (int, float, bool, Decimal, datetime, date, time, UUID)  # what the texts of keys are read into
_SCALARS = (datetime, date, time, UUID, Decimal)
_KINDS = (dict, list, str, int, float, bool, type(None))  # of JSON values
_WRAPPERS = (typing.Annotated, typing.Required, typing.NotRequired, typing.Final)


def bare(wanted: Any) -> Any:
    """What a hint stands for: NewType, Annotated and the like say no more about JSON. A type variable without a bound is Any."""
    while True:
        if typing.get_origin(wanted) in _WRAPPERS:
            wanted = typing.get_args(wanted)[0]
        elif isinstance(wanted, typing.NewType):
            wanted = wanted.__supertype__
        elif isinstance(wanted, getattr(typing, "TypeAliasType", ())):  # Python 3.12
            wanted = wanted.__value__
        elif isinstance(wanted, TypeVar):
            bound = Union[wanted.__constraints__] if wanted.__constraints__ else wanted.__bound__
            return Any if bound is None or isinstance(bound, typing.ForwardRef) else bare(bound)
        else:
            return wanted


def is_union(wanted: Any) -> bool:
    return typing.get_origin(wanted) in (Union, types.UnionType)


def join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def is_pydantic(wanted: Any) -> bool:
    return callable(getattr(wanted, "model_validate", None)) or callable(getattr(wanted, "parse_obj", None))


def holds(value: Any, wanted: Any, asked: Callable[[Any, Any], bool]) -> bool:
    try:
        return asked(value, wanted)
    except TypeError:  # a protocol that cannot be asked for
        return True


def hints_of(wanted: Any, arguments: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The hints of a class's fields; of a generic one with what its type variables stand for."""
    hints = _hints(wanted)
    if not hasattr(wanted, "__orig_bases__"):
        return hints
    bound: dict[Any, dict[Any, Any]] = {}
    _bind(wanted, arguments, bound)
    everywhere = {variable: kind for of in reversed(bound.values()) for variable, kind in of.items()}
    # Each class of the line may use a variable's name for itself; a TypedDict has no line.
    owners = {name: owner for owner in reversed(wanted.__mro__) if owner in bound for name in inspect.get_annotations(owner)}
    plain = typing.is_typeddict(wanted)
    return {name: _put(hint, everywhere if plain or name not in owners else bound[owners[name]]) for name, hint in hints.items()}


@lru_cache(maxsize=1024)
def _hints(wanted: type) -> dict[str, Any]:
    return typing.get_type_hints(wanted, include_extras=True)


def _bind(wanted: Any, arguments: tuple[Any, ...], bound: dict[Any, dict[Any, Any]]) -> None:
    """Notes what the type variables of a class and of those that it extends stand for."""
    bound[wanted] = dict(zip(getattr(wanted, "__parameters__", ()), arguments))
    for base in wanted.__dict__.get("__orig_bases__", wanted.__bases__):
        origin = typing.get_origin(base) or base
        if isinstance(origin, type) and origin not in (object, dict, typing.Generic, typing.Protocol):
            _bind(origin, tuple(_put(argument, bound[wanted]) for argument in typing.get_args(base)), bound)


def _put(hint: Any, bound: dict[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return bound.get(hint, hint)
    variables = () if isinstance(hint, type) and not typing.get_origin(hint) else getattr(hint, "__parameters__", ())
    if not any(variable in bound for variable in variables):
        return hint
    return hint[tuple(bound.get(variable, variable) for variable in variables)]


def required(wanted: Any) -> list[str]:
    """The names of the fields that must be there, of a dataclass or a TypedDict."""
    if typing.is_typeddict(wanted):
        hints = _hints(wanted)  # the class does not know of NotRequired where annotations are texts
        return [name for name in wanted.__required_keys__ if typing.get_origin(hints[name]) is not typing.NotRequired]
    missing = dataclasses.MISSING
    return [field.name for field in dataclasses.fields(wanted) if field.init and field.default is missing and field.default_factory is missing]


def unreadable(wanted: Any, path: str = "", seen: tuple[Any, ...] = ()) -> str | None:
    """The class in a type hint into which no JSON value is read, and the field that wants it; None when there is none. Fields
    with a default need not be there, so they are not looked at."""
    wanted = bare(wanted)
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted in (Any, None, Ellipsis) or origin is Literal:
        return None
    if is_union(wanted):  # one that is read is enough: a function may take more than handlers need
        found = [unreadable(one, path, seen) for one in arguments if one is not type(None)]
        return found[0] if found and all(found) else None
    name, wanted = getattr(wanted, "__name__", str(wanted)), origin or wanted
    if isinstance(wanted, type):
        if wanted in seen or is_pydantic(wanted):
            return None
        if (container := CONTAINERS.get(wanted)) is not None:
            if container is dict and arguments and not _is_key(arguments[0]):
                return _named(f"{name} with keys of type {getattr(bare(arguments[0]), '__name__', arguments[0])}", path)
            kinds = arguments[1:] if container is dict else arguments
            return next((found for kind in kinds if (found := unreadable(kind, path, seen))), None)
        if dataclasses.is_dataclass(wanted) or typing.is_typeddict(wanted):
            try:
                hints = hints_of(wanted, arguments)
            except NameError:  # of a class that is yet to be defined
                return None
            fields = ((field, unreadable(hints[field], join(path, field), (*seen, wanted))) for field in required(wanted))
            return next((found for _, found in fields if found), None)
        if wanted in _SCALARS or issubclass(wanted, Enum) or any(holds(kind, wanted, issubclass) for kind in _KINDS):
            return None
    return _named(name, path)


def _named(name: str, path: str) -> str:
    return f"{name}, as field {path!r} is annotated" if path else name


def _is_key(kind: Any) -> bool:
    """Whether the keys of an object are read into this."""
    kind = bare(kind)
    if is_union(kind):
        return any(_is_key(one) for one in typing.get_args(kind))
    if kind is Any or typing.get_origin(kind) is Literal or kind in KEYS:
        return True
    return isinstance(kind, type) and (issubclass(kind, Enum) or holds(str, kind, issubclass))
