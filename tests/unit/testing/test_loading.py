"""Files that are loaded for tests."""

from __future__ import annotations

import operator
import sys
from pathlib import Path

import pytest

from ostinato.testing import load


def test_a_file_does_not_hide_a_module_of_python(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text("value = 1\n")
    assert load(tmp_path / "operator.py").value == 1
    assert sys.modules["operator"] is operator


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.py: not a Python file"):
        load(tmp_path / "none.py")
