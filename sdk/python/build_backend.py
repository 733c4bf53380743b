"""Builds the package with setuptools, without what an earlier build has left: that would ship modules which are gone."""

import shutil

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    shutil.rmtree("build", ignore_errors=True)
    try:
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree("build", ignore_errors=True)
