"""Flags in Go's notation."""

from __future__ import annotations

import argparse
import logging

import pytest

from ostinato.cli.envtest import flags
from ostinato.cli.error import CommandError
from ostinato.cli.options.server.values import boolean


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = flags.make_parser("program", "A program.")
    parser.add_argument("--secure-port", type=int)
    parser.add_argument("--mode", action="append")
    parser.add_argument("--privileged", type=boolean, nargs="?", const=True, default=False)
    parser.add_argument("--compress", action="store_true")
    parser.add_argument("-v", "--v")
    return parser


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--secure-port=1"], {"secure_port": 1}),
        (["--secure-port", "1"], {"secure_port": 1}),
        (["--secure_port=1"], {"secure_port": 1}),
        (["--secure-port=1", "--secure-port=2"], {"secure_port": 2}),
        (["--mode", "-dash", "--mode=--x"], {"mode": ["-dash", "--x"]}),
        (["--privileged"], {"privileged": True}),
        (["--privileged=false"], {"privileged": False}),
        (["--privileged=T"], {"privileged": True}),
        (["--compress=true"], {"compress": True}),
        (["--compress=false"], {"compress": False}),
        (["-v=5"], {"v": "5"}),
        (["-v", "5"], {"v": "5"}),
    ],
)
def test_notations(parser: argparse.ArgumentParser, arguments: list[str], expected: dict[str, object]) -> None:
    found = vars(flags.parse(parser, arguments))
    assert {name: found[name] for name in expected} == expected


def test_unknown_flags_are_reported_and_ignored(
    parser: argparse.ArgumentParser, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = ["--secure", "9", "--feature-gates=A=true", "--profiling", "--secure-port=1", "-x", "--sec=2"]
    assert flags.parse(parser, arguments).secure_port == 1
    prefix = "flag is not supported and has no effect program=program flag="
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        f"{prefix}--secure",
        f"{prefix}--feature-gates",
        f"{prefix}--profiling",
        f"{prefix}-x",
        f"{prefix}--sec",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["etcd"], "unexpected argument 'etcd'; program only has flags, see --help"),
        (["--privileged", "true"], "unexpected argument 'true'; program only has flags, see --help"),
        (["--"], "unexpected argument '--'; program only has flags, see --help"),
        (["--secure-port"], "--secure-port: flag needs an argument"),
        (["--compress=maybe"], "--compress: 'maybe': want true or false"),
    ],
)
def test_invalid_arguments(parser: argparse.ArgumentParser, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as failure:
        flags.parse(parser, arguments)
    assert str(failure.value) == message
