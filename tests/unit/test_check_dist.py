"""`make dist` rejects a wheel that must not be published."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import check_dist

    sys.modules.pop("check_dist")
    return check_dist


def wheel(script: ModuleType, place: Path, *, leave_out: str = "", add: str = "", version: str = "") -> Path:
    project = script.PROJECT
    information = f"ostinato-{project['version']}.dist-info"
    metadata = f"""Metadata-Version: 2.4
Name: ostinato
Version: {version or project["version"]}
Requires-Python: {project["requires-python"]}
License-Expression: {project["license"]}
Description-Content-Type: text/markdown
Classifier: Typing :: Typed

# Ostinato
"""
    files = {
        "ostinato/__init__.py": "",
        "ostinato/py.typed": "",
        f"{information}/METADATA": metadata,
        f"{information}/licenses/LICENSE": "",
        f"{information}/entry_points.txt": "",
    }
    made = place / "ostinato.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            if name != leave_out:
                archive.writestr(name, text)
        if add:
            archive.writestr(add, "")
    return made


def test_a_complete_wheel_is_accepted(script: ModuleType, tmp_path: Path) -> None:
    script.check_wheel(wheel(script, tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leave_out": "ostinato/py.typed"}, "ostinato/py.typed is missing"),
        ({"add": "tests/data/a.json"}, "contains ['tests'] beside the package"),
        ({"add": "ostinato/__pycache__/a.pyc"}, "contains ostinato/__pycache__/a.pyc"),
        ({"version": "9.9"}, "Version is '9.9'"),
    ],
)
def test_others_are_rejected_with_the_reason(
    script: ModuleType, change: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(script.DistributionError) as raised:
        script.check_wheel(wheel(script, tmp_path, **change))
    assert message in str(raised.value)
