"""Options of `ostinato apiserver --workers`; the processes themselves: tests/cluster/test_several_servers.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.cli.app import run


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--workers", "2"], "--workers 2: several processes need a store that they can share; use --store etcd:"),
        (["--workers", "2", "--store", "memory"], "SQLite and memory stores belong to one process"),
        (["--workers", "0"], "--workers 0: want a number from 1 on"),
        (["--advertise-address", "example.com"], "--advertise-address example.com: want an IP address"),
        (["--advertise-address", "fd00::1"], "range 10.0.0.0/24: want an address of the same IP family as the first"),
    ],
)
def test_invalid_options_are_reported(
    options: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["apiserver", "--state", str(tmp_path), *options]) == 1
    assert problem in capsys.readouterr().err
