"""Recordings of deciders: what is written, and how it is replayed."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato.frontends.kernel.recording import (
    DIRECTORY,
    SECRETS,
    RecordingError,
    recorded,
    recordings,
    replayed,
)
from ostinato.frontends.kernel.sync import DeciderError, SyncRequest, SyncResult

Json = dict[str, Any]


def request(name: str = "a", **more: Any) -> SyncRequest:
    parent = {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name}, **more}
    return SyncRequest(controller="widgets", parent=parent, attempt=2)


async def doubling(given: SyncRequest) -> SyncResult:
    assert given.parent is not None
    size = given.parent.get("spec", {}).get("size", 1)
    given.parent["changed"] = True
    return SyncResult(status={"size": 2 * size, "at": {"time": 1}})


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "made"))
    return tmp_path / "made"


def call(decider: Any, *given: SyncRequest) -> None:
    async def main() -> None:
        for each in given:
            await decider(each)

    asyncio.run(main())


def test_nothing_is_recorded_without_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY, raising=False)
    assert recorded(doubling) is doubling


def test_a_call_is_written_as_it_was_before_the_decider_changed_its_request(directory: Path) -> None:
    call(recorded(doubling), request(spec={"size": 3}))
    ((path, found),) = recordings(directory)
    assert path == directory / "widgets" / "00001-Widget-a.json"
    assert found.request == SyncRequest(controller="widgets", parent=request(spec={"size": 3}).parent)
    assert found.result == SyncResult(status={"size": 6, "at": {"time": 1}})


def test_equal_calls_are_written_once_and_numbers_continue(directory: Path) -> None:
    call(recorded(doubling), request(), request(), request("b"))
    call(recorded(doubling), request("c"))
    assert [path.name for path, _ in recordings(directory)] == [
        "00001-Widget-a.json",
        "00002-Widget-b.json",
        "00003-Widget-c.json",
    ]


def test_a_failed_call_is_written_with_its_error(directory: Path) -> None:
    async def failing(_: SyncRequest) -> SyncResult:
        raise DeciderError("no such size")

    with pytest.raises(DeciderError):
        call(recorded(failing), request())
    ((_, found),) = recordings(directory)
    assert (found.result, found.error) == (None, "DeciderError: no such size")
    assert asyncio.run(replayed(found, failing)) == ""
    assert '+  "status"' in asyncio.run(replayed(found, doubling))


def test_values_of_secrets_are_not_written(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hush = base64.b64encode(b"hush").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": hush}}

    async def copying(given: SyncRequest) -> SyncResult:
        return SyncResult(children=[{**secret, "stringData": {"other": "plain hush"}}], status={"of": given.controller})

    given = SyncRequest(controller="widgets", related={"Secret.v1": {"default/s": secret}}, snapshots={"all": [secret]})
    call(recorded(copying), given)
    ((path, found),) = recordings(directory)
    assert hush not in path.read_text()
    assert "hush" not in path.read_text()
    assert asyncio.run(replayed(found, copying)) == ""
    monkeypatch.setenv(SECRETS, "1")
    call(recorded(copying), given)
    assert hush in list(recordings(directory))[1][0].read_text()


def test_a_difference_is_shown_unless_it_is_ignored(directory: Path) -> None:
    call(recorded(doubling), request(spec={"size": 3}))
    ((_, found),) = recordings(directory)

    async def other(given: SyncRequest) -> SyncResult:
        result = await doubling(given)
        assert result.status is not None
        result.status["at"]["time"] = 2
        return result

    assert asyncio.run(replayed(found, doubling)) == ""
    text = asyncio.run(replayed(found, other))
    assert '-      "time": 1' in text
    assert '+      "time": 2' in text
    assert asyncio.run(replayed(found, other, ignore=["status.at.time"])) == ""
    assert asyncio.run(replayed(found, other, ignore=["status.at"])) == ""
    assert asyncio.run(replayed(found, other, ignore=["status.at.other"])) != ""


def test_names_cannot_leave_the_directory(directory: Path) -> None:
    wild = SyncRequest(controller="../../etc/x y", parent={"kind": "../K", "metadata": {"name": "../../n\n"}})

    async def nothing(_: SyncRequest) -> SyncResult:
        return SyncResult()

    call(recorded(nothing), wild)
    (found,) = [path.relative_to(directory) for path, _ in recordings(directory)]
    assert str(found) == "etc-x-y/00001-K-..-..-n.json"


def test_a_directory_that_cannot_be_written_does_not_stop_the_decider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "file"))
    call(recorded(doubling), request())
    assert "recording failed" in caplog.text


BAD: list[tuple[str, str]] = [
    ("{", "not a recording"),
    ('{"result": {}}', "missing required field `request`"),
    (msgspec.json.encode({"version": 9, "request": {"controller": "a"}}).decode(), "version 9 of recordings"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_file_that_is_not_a_recording_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(RecordingError, match=rf"bad\.json: .*{message}"):
        list(recordings(tmp_path))


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="not a directory; record with"):
        list(recordings(tmp_path / "none"))
