"""What a type checker is told."""

from __future__ import annotations

import typing
import unittest

import pawl
from pawl.step import T


class TypesTest(unittest.TestCase):
    def test_what_is_read_without_a_type_is_anything(self) -> None:
        for function, typed in ((pawl.Step.dependency, T), (pawl.Step.config, T | None)):
            with self.subTest(function.__name__):
                told = [typing.get_type_hints(overload) for overload in typing.get_overloads(function)]
                # Without a kind, with a class, and with what else a type may be written as.
                self.assertEqual([(hints.get("kind"), hints["return"]) for hints in told], [(None, typing.Any), (type[T], typed), (typing.Any, typing.Any)])
