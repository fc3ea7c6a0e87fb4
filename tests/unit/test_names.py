"""The names that a beginner needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ostinato


def test_every_name_is_there() -> None:
    for name in ostinato.__all__:
        assert getattr(ostinato, name) is not None
        assert name in dir(ostinato)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        ostinato.Nonsense  # noqa: B018


def test_importing_loads_neither_kinds_nor_asyncio() -> None:
    code = "import sys, ostinato; print([m for m in sys.modules if m.startswith(('ostinato.', 'asyncio', 'aiohttp'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['ostinato.lazy']\n"
