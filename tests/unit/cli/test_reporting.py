"""Errors that a user can fix are reported in one line."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.cli.error import CommandError
from ostinato.cli.reporting import command_errors
from ostinato.manager import LeadershipLost

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
"""


@pytest.fixture
def error_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    (tmp_path / "config").write_text(KUBECONFIG)

    def call(command: str, *arguments: str) -> str:
        place = ("--state", str(tmp_path)) if command == "up" else ("--kubeconfig", str(tmp_path / "config"))
        assert run([command, *arguments, *place]) == 1
        return capsys.readouterr().err

    return call


@pytest.fixture
def taken() -> Iterator[str]:
    """An address at which somebody listens already."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["controllers", "--health", "here"], "ostinato controllers: --health: 'here' is not a listen address"),
        (["scheduler", "--metrics", "here"], "ostinato scheduler: --metrics: 'here' is not a listen address"),
        (["controllers", "--ca-certificate", "/none"], "controllers: /none: No such file or directory\n"),
        (["controllers", "--without", "x"], "ostinato controllers: unknown controller 'x'; choose from "),
        (["controllers", "--context", "b"], 'context "b" does not exist; choose one of "a"'),
        (["node", "--runtime", "x"], "is not supported by a joined node; use process or containerd"),
        (["up", "--runtime", "x"], "ostinato up: unknown runtime 'x'; choose from containerd, process, simulated\n"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    error_of: Callable[..., str], arguments: list[str], expected: str
) -> None:
    error = error_of(*arguments)
    assert expected in error
    assert error.count("\n") == 1


def test_a_port_in_use_is_reported(error_of: Callable[..., str], taken: str) -> None:
    error = error_of("scheduler", "--no-leader-election", "--health", taken)
    assert error.startswith("ostinato scheduler: cannot serve health: ")
    assert taken.rpartition(":")[2] in error


def test_an_unreachable_runtime_is_reported_with_a_remedy(error_of: Callable[..., str], tmp_path: Path) -> None:
    places = ("--containerd", str(tmp_path / "none"), "--state", str(tmp_path / "node"), "--listen", "127.0.0.1:0")
    error = error_of("node", "--runtime", "containerd", *places)
    assert "check that it runs and that its socket is accessible" in error or "pip install" in error
    assert error.count("\n") == 1


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(CommandError, match=r"^gone; also gone$"), command_errors():
        raise ExceptionGroup("both", [LeadershipLost("gone"), OSError("also gone")])
    with pytest.raises(ExceptionGroup), command_errors():
        raise ExceptionGroup("one is ours", [LeadershipLost("gone"), KeyError("x")])
    with pytest.raises(KeyError), command_errors():
        raise KeyError("x")
