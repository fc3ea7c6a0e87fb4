"""What a command cannot do for a reason that its user can mend is told in a line."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.cli.error import Failure
from ostinato.cli.reporting import told
from ostinato.manager import LeadershipLost

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
"""


@pytest.fixture
def says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
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
        (["controllers", "--without", "x"], "ostinato controllers: there is no controller 'x'"),
        (["controllers", "--context", "b"], 'context "b" does not exist; choose one of "a"'),
        (["node", "--runtime", "x"], "ostinato node: a node that joins has the runtime process or containerd"),
        (["up", "--runtime", "x"], "ostinato up: there is no runtime 'x'; there are containerd, process, simulated\n"),
    ],
)
def test_what_was_asked_for_wrongly_is_told(says: Callable[..., str], arguments: list[str], expected: str) -> None:
    said = says(*arguments)
    assert expected in said
    assert said.count("\n") == 1


def test_a_port_that_is_taken_is_told(says: Callable[..., str], taken: str) -> None:
    said = says("scheduler", "--no-leader-election", "--health", taken)
    assert said.startswith("ostinato scheduler: cannot serve health: ")
    assert taken.rpartition(":")[2] in said


def test_a_node_whose_runtime_does_not_answer_tells_what_to_do(says: Callable[..., str], tmp_path: Path) -> None:
    places = ("--containerd", str(tmp_path / "none"), "--state", str(tmp_path / "node"), "--listen", "127.0.0.1:0")
    said = says("node", "--runtime", "containerd", *places)
    assert "is it running, and may you use its socket?" in said or "pip install" in said
    assert said.count("\n") == 1


def test_errors_of_a_program_keep_their_traceback() -> None:
    with pytest.raises(Failure, match=r"^gone; also gone$"), told():
        raise ExceptionGroup("both", [LeadershipLost("gone"), OSError("also gone")])
    with pytest.raises(ExceptionGroup), told():
        raise ExceptionGroup("one is ours", [LeadershipLost("gone"), KeyError("x")])
    with pytest.raises(KeyError), told():
        raise KeyError("x")
