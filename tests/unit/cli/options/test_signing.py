"""Options of the signing authority."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane import signing


def parsed(*arguments: str) -> tuple[Path, Path] | None:
    parser = argparse.ArgumentParser()
    signing.add_to(parser)
    return signing.signing_of(parser.parse_args(arguments))


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    certificate = ("--cluster-signing-cert-file", str(tmp_path / "ca.crt"))
    key = ("--cluster-signing-key-file", str(tmp_path / "ca.key"))
    assert parsed() is None
    with pytest.raises(CommandError, match="need each other: give both"):
        parsed(*certificate)
    with pytest.raises(CommandError, match=r"ca\.key: no such file"):
        parsed(*certificate, *key)
    (tmp_path / "ca.key").touch()
    assert parsed(*certificate, *key) == (tmp_path / "ca.crt", tmp_path / "ca.key")
