"""Hints that say more than their class: keys, new types, generic classes; and numbers with all of their digits."""

from __future__ import annotations

import json
import pickle
import unittest
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypedDict, TypeVar
from uuid import UUID

import pawl
from pawl.codec import encode, parse
from pawl.decode import Mismatch, decode
from pawl.testing import run_handler

T, U = TypeVar("T"), TypeVar("U")
Whole = TypeVar("Whole", bound=int)
OrderId = NewType("OrderId", UUID)
Cents = NewType("Cents", int)
ID = "0190f3c5-0000-7000-8000-000000000000"


class Size(Enum):
    SMALL = "small"


class Level(IntEnum):
    LOW = 1


@dataclass
class Item:
    sku: str


@dataclass
class Page(Generic[T]):
    items: list[T]
    next: Optional[T] = None
    more: list[T] | None = None


@dataclass
class Pair(Page[U], Generic[T, U]):  # its T is not Page's
    first: T | None = None


@dataclass
class ItemPage(Page[Item]):
    pass


class Answer(TypedDict, Generic[T]):
    data: T


class HintsTest(unittest.TestCase):
    def test_keys_are_read_too(self) -> None:
        for keys, wanted, expected in (
            (["1", "-2"], int, [1, -2]), (["1.5"], float, [1.5]), (["1.50"], Decimal, [Decimal("1.5")]), ([ID], UUID, [UUID(ID)]),
            (["2024-05-01"], date, [date(2024, 5, 1)]), (["small"], Size, [Size.SMALL]), (["1"], Level, [Level.LOW]), (["true"], bool, [True]),
            (["a"], Literal["a", 1], ["a"]), (["1"], Literal["a", 1], [1]), (["1", "a"], int | str, [1, "a"]), ([ID], OrderId, [UUID(ID)]),
            (["1"], Annotated[int, "n"], [1]), (["1"], Any, ["1"]), (["1"], str, ["1"]), (["12345678901234567890"], int, [12345678901234567890]),
        ):  # fmt: skip
            with self.subTest(wanted):
                read = decode(dict.fromkeys(keys, 0), dict[wanted, int])
                self.assertEqual(list(read), expected)
                self.assertEqual([type(key) for key in read], [type(key) for key in expected])

    def test_keys_that_do_not_fit_are_refused(self) -> None:
        for value, wanted, says in (
            ({"a": 1}, dict[int, int], "field 'a' has a key that is no int"), ({"01": 1}, dict[int, int], "no int"), ({"1.5": 1}, dict[int, int], "whole number"),
            ({"x": 1}, dict[UUID, int], "is no UUID"), ({"x": 1}, dict[Size, int], "no Size"), ({"1": 1}, dict[bool, int], "no bool"),
            ({ID: 1, ID.upper(): 2}, dict[UUID, int], "two keys that are the same"), ({"1": 1, "1.0": 2}, dict[int, int], "two keys that are the same"),
        ):  # fmt: skip
            with self.subTest(value), self.assertRaises(Mismatch) as raised:
                decode(value, wanted)
            self.assertIn(says, str(raised.exception))
        for wanted in (dict[tuple[int, int], int], dict[Item, int], Page[dict[bytes, int]]):
            with self.subTest(wanted), self.assertRaises(pawl.ConfigError):
                self.takes(wanted)

    def test_a_new_type_is_what_it_is_made_of(self) -> None:
        self.assertEqual(decode([ID], list[OrderId]), [UUID(ID)])
        self.assertEqual(decode(3, Cents), 3)
        for value, wanted in (("3", Cents), (3, OrderId), (None, Cents)):
            with self.subTest(wanted), self.assertRaises(Mismatch):
                decode(value, wanted)
        with self.assertRaises(pawl.ConfigError):
            self.takes(NewType("Raw", bytes))

    def test_type_variables_stand_for_what_they_are_bound_to(self) -> None:
        item, items = {"sku": "a"}, [{"sku": "a"}]
        for value, wanted, expected in (
            ({"items": items, "next": item, "more": items}, Page[Item], Page([Item("a")], Item("a"), [Item("a")])),
            ({"items": [{"items": items}]}, Page[Page[Item]], Page([Page([Item("a")])])),
            ({"items": items}, ItemPage, ItemPage([Item("a")])),
            ({"items": items, "first": ID}, Pair[UUID, Item], Pair([Item("a")], first=UUID(ID))),
            ({"data": items}, Answer[list[Item]], {"data": [Item("a")]}),
            ({"items": items}, Page, Page(items)),
            (3, Whole, 3),
        ):
            with self.subTest(wanted):
                self.takes(wanted)
                self.assertEqual(decode(value, wanted), expected)
        for value, wanted in (({"items": [1]}, Page[Item]), ({"items": [1]}, ItemPage), ({"data": 1}, Answer[str]), ("3", Whole)):
            with self.subTest(wanted), self.assertRaises(Mismatch):
                decode(value, wanted)
        with self.assertRaises(pawl.ConfigError) as raised:
            self.takes(Page[bytes])
        self.assertIn("bytes, as field 'items'", str(raised.exception))

    @staticmethod
    def takes(wanted: Any) -> None:
        def handle(value: Any) -> None:
            pass

        handle.__annotations__ = {"value": wanted}
        pawl.Worker("q").handler("x")(handle)


class NumbersTest(unittest.TestCase):
    def test_no_digit_is_lost_without_a_word(self) -> None:
        for text, wanted, expected in (
            ("12345678901234567.89", Decimal, Decimal("12345678901234567.89")), ("0.1", Decimal, Decimal("0.1")), ("1e2", Decimal, Decimal(100)),
            ("12345678901234567890.0", int, 12345678901234567890), ("100000000000000000000000.0", int, 10**23), ("3.0", int, 3),
            ("9007199254740993", float | int, 9007199254740993), ("9007199254740993.0", float | int, 9007199254740993),
            ("9007199254740993", float | Decimal, Decimal(9007199254740993)), ("1.5", float | int, 1.5), ("3.0", float | int, 3.0),
            ("1234567890123456789012345678901234567890.0", int, 1234567890123456789012345678901234567890),
            ("12345678901234567.89", float, 12345678901234567.89), ("12345678901234567.89", Optional[float], 12345678901234567.89),
        ):  # fmt: skip
            with self.subTest(text, wanted=wanted):
                read = decode(parse(text), wanted)
                self.assertEqual((read, type(read)), (expected, type(expected)))
        for text in ("12345678901234567.89", "1e-400", "0.50000000000000001"):
            with self.subTest(text), self.assertRaises(Mismatch):
                decode(parse(text), int)
        with self.assertRaises(Mismatch) as raised:
            decode(parse("1" + "0" * 400 + ".5"), float)
        self.assertEqual(str(raised.exception), "it is a number that a float cannot hold")

    def test_a_number_that_a_float_does_not_hold_is_a_float_with_its_text(self) -> None:
        self.assertEqual({type(number) for number in parse("[0.1, 1.5, 123456.789, 1e3, 0.30000000000000004]")}, {float})
        number = parse("12345678901234567.89")
        self.assertIsInstance(number, float)
        self.assertEqual((number, str(number)), (12345678901234567.89, "12345678901234567.89"))
        self.assertEqual(json.loads(encode([number])), [number])
        again = pickle.loads(pickle.dumps(number))
        self.assertEqual((again, str(again)), (number, str(number)))
        with self.assertRaises(Mismatch) as raised:
            decode(number, str)
        self.assertEqual(str(raised.exception), "it is a number, and the handler wants a string")

    def test_handlers_get_them(self) -> None:
        def handle(price: Decimal) -> str:
            return str(price)

        handle.__annotations__ = {"price": Decimal}
        self.assertEqual(run_handler(handle, input=Decimal("12345678901234567.89")).result, "12345678901234567.89")
