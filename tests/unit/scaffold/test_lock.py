"""requirements.lock: versions of what is installed."""

from __future__ import annotations

from importlib import metadata

import pytest

from ostinato.scaffold import lock


class Installed:
    def __init__(self, version: str, *requires: str) -> None:
        self.version = version
        self.requires = list(requires)


def test_the_lock_has_what_is_needed_and_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "ostinato": Installed(
            "0.1.0",
            "MsgSpec >=0.20",
            "Py_YAML[c,d]>=6 ; python_version < '4'",
            "absent>=1",
            'crypto>=45; extra == "webhook"',
            "ostinato[webhook]; extra == 'all'",
            "linter; extra == 'dev'",
        ),
        "msgspec": Installed("0.21.1"),
        "py-yaml": Installed(
            "6.0.3", "cparser; (sys_platform == 'linux' or os_name == 'nt') and extra == 'c'", "shared"
        ),
        "cparser": Installed("1", "py-yaml[c]"),
        "crypto": Installed("45.0", "shared"),
        "shared": Installed("2"),
        "linter": Installed("3"),
    }

    def distribution(name: str) -> Installed:
        if name not in known:
            raise metadata.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(lock, "distribution", distribution)
    assert lock.installed("ostinato").splitlines()[2:] == [
        "cparser==1 ; (sys_platform == 'linux' or os_name == 'nt') and python_version < '4'",
        "msgspec==0.21.1",
        "ostinato==0.1.0",
        "py-yaml==6.0.3 ; python_version < '4'",
        "shared==2 ; python_version < '4'",
    ]
    assert "crypto==45.0" in lock.installed("ostinato", ("all",)).splitlines()
    assert "shared==2" in lock.installed("ostinato", ("all",)).splitlines()


def test_the_lock_of_this_environment_names_its_versions() -> None:
    text = lock.installed("ostinato")
    for name in ("ostinato", "msgspec", "pyyaml"):
        assert f"\n{name}=={metadata.version(name)}\n" in text
