"""Type hints to values and back, without a database."""

from __future__ import annotations

import asyncio
import functools
import unittest
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, Callable, Generic, Literal, Mapping, NamedTuple, NotRequired, Optional, Protocol, Sequence, TypedDict, TypeVar
from uuid import UUID

import pawl
from pawl.codec import encode
from pawl.decode import Mismatch, decode
from pawl.testing import run_handler

try:
    import pydantic
except ImportError:  # it is not required
    pydantic = None


class Size(Enum):
    SMALL = "small"


@dataclass
class Item:
    sku: str
    quantity: int = 1


class Address(TypedDict):
    city: str
    zip: NotRequired[str]


@dataclass
class Order:
    items: list[Item]
    placed_at: datetime
    total: Decimal
    customer: UUID
    size: Size = Size.SMALL
    note: Optional[str] = None
    shipping: Literal["standard", "express"] = "standard"
    extra: dict[str, float] = field(default_factory=dict)
    address: Address | None = None


WIRE = {
    "items": [{"sku": "a", "quantity": 2}, {"sku": "b"}], "placed_at": "2024-05-01T10:00:00+00:00", "total": "12.30",
    "customer": "0190f3c5-0000-7000-8000-000000000000", "extra": {"x": 1}, "address": {"city": "Graz"},
}  # fmt: skip


class Point(NamedTuple):
    x: int


class Plain:
    pass


@dataclass
class Node:
    children: list[Node]
    value: Plain | None = None


@dataclass
class Deep:
    points: dict[str, list[Point]]


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


class Named(Protocol):
    name: str


class DecodeTest(unittest.TestCase):
    def test_values_go_in_and_out(self) -> None:
        order = decode(WIRE | {"a_newer_field": 1}, Order)
        self.assertEqual(order.items, [Item("a", 2), Item("b", 1)])
        self.assertEqual((order.placed_at, order.total), (datetime(2024, 5, 1, 10, tzinfo=timezone.utc), Decimal("12.30")))
        self.assertEqual(order.extra, {"x": 1.0})
        import json

        self.assertEqual(decode(json.loads(encode(order)), Order), order)

    def test_what_does_not_fit_is_named_without_its_value(self) -> None:
        for change, says in (
            ({"items": {}}, "field 'items' is an object, and the handler wants an array"),
            ({"items": [{"sku": 3}]}, "field 'items.0.sku' is a number, and the handler wants a string"),
            ({"items": [{"sku": "a", "quantity": True}]}, "field 'items.0.quantity' is a boolean, and the handler wants a whole number"),
            ({"items": [{}]}, "field 'items.0.sku' is missing"),
            ({"placed_at": "secret"}, "field 'placed_at' is no datetime"),
            ({"size": "secret"}, "field 'size' is no Size"),
            ({"shipping": "secret"}, "field 'shipping' is none of 'standard', 'express'"),
            ({"note": 3}, "field 'note' is a number, and the handler wants a string"),
            ({"address": {}}, "field 'address.city' is missing"),
            ({"customer": None}, "field 'customer' is null, and the handler wants a string"),
        ):
            with self.subTest(says), self.assertRaises(Mismatch) as raised:
                decode(WIRE | change, Order)
            self.assertEqual(str(raised.exception), says)
        with self.assertRaises(Mismatch):
            decode(WIRE | {"x": 1}, Order, refuse_unknown=True)

    def test_other_types(self) -> None:
        for value, wanted, expected in (
            (3.0, int, 3), (3, float, 3.0), ([1, "a"], tuple[int, str], (1, "a")), ([1, 1], set[int], {1}), ({"a": 1}, dict, {"a": 1}),
            ([{"sku": "a"}], Sequence[Item], [Item("a")]), ({"a": {"sku": "a"}}, Mapping[str, Item], {"a": Item("a")}),
            ({"content": 1}, Box[int], Box(1)), ({"children": [{"children": []}]}, Node, Node([Node([])])), ("x", Plain | str, "x"),
            (None, None, None), ("x", int | str, "x"), ({"anything": 1}, Any, {"anything": 1}),
        ):  # fmt: skip
            with self.subTest(wanted):
                self.assertEqual(decode(value, wanted), expected)

    def test_numbers_that_python_has_limits_for(self) -> None:
        self.assertEqual(decode(10**5000, Decimal), Decimal(10) ** 5000)
        self.assertEqual(decode(10**5000, int), 10**5000)
        with self.assertRaises(Mismatch):
            decode(10**400, float)
        with self.assertRaises(Mismatch):
            decode([[1]], set)
        with self.assertRaises(Mismatch):
            decode({"extra": {"x": 10**400}} | {key: value for key, value in WIRE.items() if key != "extra"}, Order)

    def test_types_that_json_is_not_read_into_are_refused_at_once(self) -> None:
        for wanted, named in (
            (Point, "Point"), (Plain, "Plain"), (list[Point], "Point"), (Optional[Plain], "Plain"), (Plain | Point, "Plain"),
            (Deep, "Point, as field 'points' is"), (bytes, "bytes"), (Callable[[], int], "Callable"),
        ):  # fmt: skip
            with self.subTest(named):
                with self.assertRaises(pawl.ConfigError) as raised:
                    self.takes(wanted)
                self.assertIn(f"not read into {named}", str(raised.exception))
                self.assertIn("dataclass", str(raised.exception))
        for wanted in (
            Any, object, None, int | Plain, dict[str, Any], Mapping[str, int], Sequence, tuple[int, ...], Node, Box[int], Order, Address, Item | None,
            Literal["a"], Size, Decimal, Named, T, "Order",
        ):  # fmt: skip
            self.takes(wanted)
        failed = run_handler(self.takes_dependency, dependencies={"point": {"x": 1}})
        self.assertEqual((failed.error["type"], failed.error["retryable"]), ("invalid_input", False))

    @staticmethod
    def takes_dependency(step: pawl.Step) -> Any:
        return step.dependency("point", Point)

    @staticmethod
    def takes(wanted: Any) -> None:
        def handle(value: Any) -> None:
            pass

        handle.__annotations__ = {"value": wanted}
        pawl.Worker("q").handler("x")(handle)

    def test_limits_of_what_can_be_stored(self) -> None:
        deep: Any = 1
        for _ in range(65):
            deep = [deep]
        loop: list[Any] = []
        loop.append(loop)
        for value in ("\x00", {"\x00": 1}, "\ud800", float("inf"), deep, loop, 10**64, "x" * (1 << 20), object()):
            with self.assertRaises(pawl.InvalidBody):
                encode(value)
        for value in ("\\u0000", deep[0], 10**63, "x" * ((1 << 20) - 2), [[1]] * 200):
            encode(value)

    @unittest.skipUnless(pydantic, "pydantic is not installed")
    def test_pydantic_models(self) -> None:
        class Model(pydantic.BaseModel):
            name: str
            age: int = 3

        def handle(model: Model) -> Model:
            return model

        handle.__annotations__ = {"model": Model, "return": Model}
        self.assertEqual(run_handler(handle, input={"name": "Ada"}).result, {"name": "Ada", "age": 3})
        failed = run_handler(handle, input={"name": "Ada", "age": "a secret"})
        self.assertEqual((failed.error["type"], failed.error["retryable"]), ("invalid_input", False))
        self.assertIn("'age'", failed.error["message"])
        self.assertNotIn("secret", failed.error["message"])


class RunHandlerTest(unittest.TestCase):
    def test_runs_handlers_of_a_worker(self) -> None:
        worker = pawl.Worker("q")

        @worker.handler("a.sync")
        def sync(item: Item, step: pawl.Step) -> dict[str, Any]:
            return {"item": item, "price": step.dependency("price", int), "config": step.config(), "attempt": step.attempt}

        @worker.handler("an.async")
        async def asynchronous(step: pawl.Step) -> None:
            raise pawl.RetryAfter("busy", 2) from ConnectionError()

        @worker.handler("in.transaction")
        def in_transaction(step: pawl.Step) -> None:
            step.complete_in(None, {"done": True})

        outcome = run_handler(worker, "a.sync", {"sku": "x"}, dependencies={"price": 3}, config={"c": 1}, attempt=2)
        self.assertEqual(outcome.result, {"item": {"sku": "x", "quantity": 1}, "price": 3, "config": {"c": 1}, "attempt": 2})
        outcome = run_handler(worker, "an.async")
        self.assertEqual(outcome.error, {"type": "ConnectionError", "message": "busy", "retryable": True, "retry_after": 2.0})
        outcome = run_handler(worker, "in.transaction")
        self.assertTrue(outcome.completed_in_transaction)
        self.assertEqual(outcome.result, {"done": True})
        self.assertEqual(run_handler(worker, "a.sync", {"sku": "x"}).error["type"], "invalid_input")  # no such dependency
        self.assertEqual(run_handler(lambda step: step.check(), cause=pawl.Cancelled()).error["type"], "cancelled")

    def test_runs_handlers_of_asyncio_wherever_it_is_called(self) -> None:
        async def asynchronous(value: int) -> int:
            await asyncio.sleep(0)
            return value + 1

        @functools.wraps(asynchronous)
        def decorated(*arguments: Any) -> Any:
            return asynchronous(*arguments)

        async def inside() -> list[Any]:
            return [run_handler(function, input=1).result for function in (asynchronous, decorated)]

        self.assertEqual(asyncio.run(inside()), [2, 2])
        self.assertEqual([run_handler(function, input=1).result for function in (asynchronous, decorated)], [2, 2])

    def test_refuses_handlers_and_workers_that_cannot_be(self) -> None:
        for make in (
            lambda: pawl.Worker([]),
            lambda: pawl.Worker("orchestration_task_requests"),
            lambda: pawl.Worker("Bad"),
            lambda: pawl.Worker(["a", "a"]),
            lambda: pawl.Worker({"a": 0}),
            lambda: pawl.Worker("a").handler(""),
            lambda: pawl.Worker("a").handler("x")(lambda a, b, c: None),
            lambda: pawl.Worker("a", database_url="x").start(),
        ):
            with self.assertRaises(pawl.ConfigError):
                make()
