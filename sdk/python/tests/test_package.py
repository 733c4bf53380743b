"""The package that is installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from .support import SDK


@unittest.skipUnless(all(importlib.util.find_spec(name) for name in ("setuptools", "wheel")), "setuptools and wheel are not installed")
class PackageTest(unittest.TestCase):
    def test_it_has_the_modules_that_there_are_and_leaves_nothing_behind(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "python"
            shutil.copytree(SDK, tree, ignore=shutil.ignore_patterns("__pycache__", "tests", "*.egg-info"))
            left = tree / "build" / "lib" / "pawl" / "gone.py"
            left.parent.mkdir(parents=True, exist_ok=True)
            left.touch()
            command = [sys.executable, "-c", "import sys; sys.path.insert(0, '.'); import build_backend; build_backend.build_wheel(sys.argv[1])", folder]
            subprocess.run(command, cwd=tree, check=True, capture_output=True)
            [wheel] = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as files:
                packed = {name for name in files.namelist() if name.startswith("pawl/")}
            self.assertEqual(packed, {f"pawl/{file.name}" for file in (SDK / "pawl").iterdir() if file.is_file()})
            self.assertFalse((tree / "build").exists())
