"""What a type checker is told."""

from __future__ import annotations

import typing
import unittest
from dataclasses import fields

import psycopg

import pawl
from pawl.step import T
from pawl.task import HandlerOptions


class TypesTest(unittest.TestCase):
    def test_what_is_read_without_a_type_is_anything(self) -> None:
        for function, typed in ((pawl.Step.dependency, T), (pawl.Step.config, T | None)):
            with self.subTest(function.__name__):
                told = [typing.get_type_hints(overload) for overload in typing.get_overloads(function)]
                # Without a kind, with a class, and with what else a type may be written as.
                self.assertEqual([(hints.get("kind"), hints["return"]) for hints in told], [(None, typing.Any), (type[T], typed), (typing.Any, typing.Any)])

    def test_submitting_gives_a_request_or_what_is_awaited_for_it(self) -> None:
        client = pawl.Client
        for function, given in ((client.submit, pawl.Submitted), (client.enqueue, pawl.Submitted), (client.submit_many, list[pawl.Submitted])):
            with self.subTest(function.__name__):
                told = [typing.get_type_hints(overload) for overload in typing.get_overloads(function)]
                awaited = typing.Coroutine[typing.Any, typing.Any, given]
                connection, asynchronous = psycopg.Connection[typing.Any] | None, psycopg.AsyncConnection[typing.Any]
                self.assertEqual([(hints["connection"], hints["return"]) for hints in told], [(connection, given), (asynchronous, awaited)])

    def test_the_options_are_the_fields_of_a_request(self) -> None:
        known = {field.name: field.type for field in fields(pawl.Request) if field.name not in ("template", "handler", "input")}
        self.assertEqual({name: hint.__forward_arg__ for name, hint in (HandlerOptions.__annotations__).items()}, known)
