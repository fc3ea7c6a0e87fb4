"""`ostinato snapshot` and `--accept-data-loss`, as operators use them: processes, files, HTTPS."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.etcd_cluster import EtcdCluster, needs_etcd
from tests.unit.cli.commands.control_plane.test_serve import SOURCE, THING, THINGS, Running

from ostinato.cli.app import run
from ostinato.server.store.sqlite.replace import VERSION_JUMP

Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Running] = []

    def start(*options: str) -> Running:
        started.append(Running(tmp_path / "state", *options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


def fill(server: Running, *names: str) -> None:
    for name in names:
        status, _ = server.call("POST", THINGS, {**THING, "metadata": {"name": name}})
        assert status == 201


def names_of(server: Running) -> set[str]:
    status, answer = server.call("GET", THINGS)
    assert status == 200
    return {item["metadata"]["name"] for item in answer["items"]} - {"kube-root-ca.crt"}


def kill(server: Running) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(10)
    assert server.process.stdout is not None
    server.process.stdout.close()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ostinato.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def snapshot(state: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(["snapshot", *arguments, "--state", str(state)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_snapshot_of_a_running_server_is_restored(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, file = tmp_path / "state", tmp_path / "snapshot.db"
    server = start()
    fill(server, "a", "b")
    code, text = snapshot(state, capsys, "save", str(file))
    assert (code, text.split()[0], stat.S_IMODE(file.stat().st_mode)) == (0, "saved", 0o600)
    fill(server, "c")
    _, answer = server.call("GET", f"{THINGS}/c")
    seen = int(answer["metadata"]["resourceVersion"])
    code, text = snapshot(state, capsys, "restore", str(file))
    assert (code, "is in use by process" in text) == (1, True)
    server.stop()

    code, text = snapshot(state, capsys, "restore", str(file))
    assert code == 0, text
    assert f"kept as {state / 'store.db.replaced-1'}*" in text
    assert (state / "store.db.replaced-1").exists()
    restored = start()
    assert names_of(restored) == {"a", "b"}
    fill(restored, "d")
    _, answer = restored.call("GET", f"{THINGS}/d")
    assert int(answer["metadata"]["resourceVersion"]) > seen + VERSION_JUMP - 100
    status, answer = restored.call("GET", f"{THINGS}?watch=1&resourceVersion={seen}")
    assert (answer["type"], answer["object"]["code"]) == ("ERROR", 410) if status == 200 else status == 410


@needs_etcd
def test_a_snapshot_of_an_etcd_is_restored(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, file = tmp_path / "state", str(tmp_path / "snapshot.db")
    with EtcdCluster.start(tmp_path / "etcd", tls=True, auth=True) as etcd:
        files = {"cafile": etcd.ca, "certfile": etcd.cert, "keyfile": etcd.key}
        store = ["--store", f"{etcd.url}/own/prefix"]
        store += [word for name, file in files.items() for word in (f"--etcd-{name}", str(file))]
        server = start(*store)
        fill(server, "a", "b")
        code, text = snapshot(state, capsys, "save", file, *store)
        assert (code, text.split()[0]) == (0, "saved"), text
        assert "integrity:            ok" in snapshot(state, capsys, "status", file)[1]
        assert "in use by 127.0.0.1" in snapshot(state, capsys, "status", *store)[1]
        fill(server, "c")
        seen = int(server.call("GET", f"{THINGS}/c")[1]["metadata"]["resourceVersion"])
        code, text = snapshot(state, capsys, "restore", file, *store)
        assert (code, "servers use it: 127.0.0.1; stop them first" in text) == (1, True)
        server.stop()
        code, text = snapshot(state, capsys, "restore", file, *store)
        assert code == 0, text
        restored = start(*store)
        assert names_of(restored) == {"a", "b"}
        status, answer = restored.call("GET", f"{THINGS}?watch=1&resourceVersion={seen}")
        assert (answer["type"], answer["object"]["code"]) == ("ERROR", 410) if status == 200 else status == 410
        restored.stop()
    code, text = snapshot(state, capsys, "save", f"{file}.2", *store)
    assert (code, "Connection refused" in text) == (1, True)


def test_a_snapshot_can_be_restored_into_a_new_directory(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start()
    fill(server, "a")
    server.stop()
    assert snapshot(tmp_path / "state", capsys, "save", str(tmp_path / "file"))[0] == 0
    code, text = snapshot(tmp_path / "other", capsys, "restore", str(tmp_path / "file"))
    assert (code, "kept" in text) == (0, False)
    other = Running(tmp_path / "other")
    try:
        assert names_of(other) == {"a"}
    finally:
        other.stop()


def test_a_restore_keeps_the_files_of_earlier_restores(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    start().stop()
    assert snapshot(state, capsys, "save", str(tmp_path / "file"))[0] == 0
    for number in (1, 2, 3):
        assert snapshot(state, capsys, "restore", str(tmp_path / "file"))[0] == 0
        assert (state / f"store.db.replaced-{number}").exists()
    assert start().line


def test_a_snapshot_never_overwrites_a_file(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start().stop()
    (tmp_path / "file").write_text("mine")
    code, text = snapshot(tmp_path / "state", capsys, "save", str(tmp_path / "file"))
    assert (code, text) == (1, f"ostinato snapshot save: {tmp_path / 'file'} exists already; choose another name\n")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "is not a store"),
        (lambda data: data[: len(data) // 2], "database disk image is malformed"),
        (lambda data: b"no database" * 1000, "file is not a database"),
        (lambda data: data.replace(b'"k":"v"', b'"k":"w"'), "ConfigMap default/a (resourceVersion"),
    ],
)
def test_a_damaged_snapshot_is_not_restored(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[bytes], bytes], message: str
) -> None:
    state, file = tmp_path / "state", tmp_path / "file"
    server = start()
    fill(server, "a")
    server.stop()
    assert snapshot(state, capsys, "save", str(file))[0] == 0
    file.write_bytes(damage(file.read_bytes()))
    before = {path.name for path in state.iterdir()}
    code, text = snapshot(state, capsys, "restore", str(file))
    assert (code, message in text, text.count("\n")) == (1, True, 1), text
    assert snapshot(state, capsys, "status", str(file))[0] == 1
    assert {path.name for path in state.iterdir()} == before
    assert names_of(start()) == {"a"}


def test_the_status_of_a_store_and_of_a_snapshot(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, file = tmp_path / "state", tmp_path / "file"
    server = start()
    code, text = snapshot(state, capsys, "status")
    assert code == 0
    assert "store.db (in use by a server)\n" in text
    assert "integrity:            ok\n" in text
    server.stop()
    code, text = snapshot(state, capsys, "status")
    assert (code, "in use" in text) == (0, False)
    assert snapshot(state, capsys, "save", str(file))[0] == 0
    assert snapshot(state, capsys, "status", str(file))[1].splitlines()[1:4] == text.splitlines()[1:4]


def test_a_missing_store_or_snapshot_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    assert snapshot(state, capsys, "status")[1].endswith(f"there is no store at {state / 'store.db'}\n")
    assert snapshot(state, capsys, "save", "x")[1].endswith(f"there is no store at {state / 'store.db'}\n")
    assert snapshot(state, capsys, "restore", str(tmp_path / "x"))[1].endswith(f"no snapshot at {tmp_path / 'x'}\n")
    assert not (state / "store.db-mark").exists()


def test_a_killed_server_with_a_flipped_bit_in_its_write_ahead_log_does_not_start(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless that is accepted: then it starts with what can be read, and says what it has done."""
    state = tmp_path / "state"
    server = start()
    fill(server, *(f"a{number}" for number in range(20)))
    kill(server)
    wal = bytearray((state / "store.db-wal").read_bytes())
    wal[len(wal) // 2] ^= 16
    (state / "store.db-wal").write_bytes(wal)
    options = ("apiserver", "--state", str(state), "--listen", "127.0.0.1:0")
    refused = command(*options)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), refused.stderr
    assert "or start with --accept-data-loss to continue with its readable part" in refused.stderr
    assert snapshot(state, capsys, "save", str(tmp_path / "file"))[0] == 1
    accepted = start("--accept-data-loss")
    assert len(names_of(accepted)) >= 19
    assert (state / "store.db.damaged-1-wal").read_bytes() == bytes(wal)
    accepted.stop()
    assert len(names_of(start())) >= 19


def test_run_embedded_rejects_a_damaged_store_unless_data_loss_is_accepted(start: Start, tmp_path: Path) -> None:
    state = tmp_path / "state"
    server = start()
    fill(server, *(f"a{number}" for number in range(20)))
    kill(server)
    wal = bytearray((state / "store.db-wal").read_bytes())
    wal[len(wal) // 2] ^= 16
    (state / "store.db-wal").write_bytes(wal)
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit(7)")  # loaded once the cluster runs
    options = ("run", "--embedded", "--state", str(state), str(program))
    refused = command(*options)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1), refused.stderr
    assert "or start with --accept-data-loss to continue with its readable part" in refused.stderr
    assert "exits with 7 on import" in command(*options, "--accept-data-loss").stderr
    assert (state / "store.db.damaged-1-wal").read_bytes() == bytes(wal)


def test_accept_data_loss_of_run_needs_a_state_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--embedded", "--accept-data-loss", "program.py"]) == 1
    assert "--accept-data-loss needs --embedded --state DIR" in capsys.readouterr().err
