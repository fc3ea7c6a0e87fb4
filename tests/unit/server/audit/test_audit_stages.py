"""The stages of a request, and what becomes of one whose event cannot be written."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.audit.auditing import Scene, audited

from ostinato.server.audit import log_file
from ostinato.server.request import Request, Response, Stream
from ostinato.server.state import StateError

MAPS = "/api/v1/namespaces/default/configmaps"


def _stages(scene: Scene) -> list[str]:
    return [event["stage"] for event in scene.events()]


def test_an_audit_id_is_the_clients_or_the_servers(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.get("/version", audit_id="mine")
        await scene.get("/version")

    first, _, other, _ = audited(tmp_path, test).events()
    assert first["auditID"] == "mine"
    assert len(other["auditID"]) == 36


def test_an_event_has_the_fields_of_kubernetes_in_their_order(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.post(MAPS, {"metadata": {"name": "a"}})

    assert list(audited(tmp_path, test).last()) == [
        "kind",
        "apiVersion",
        "level",
        "auditID",
        "stage",
        "requestURI",
        "verb",
        "user",
        "userAgent",
        "objectRef",
        "responseStatus",
        "requestObject",
        "responseObject",
        "requestReceivedTimestamp",
        "stageTimestamp",
        "annotations",
    ]


def test_a_watch_is_started_and_completed(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        request = Request("GET", MAPS, "watch=1&timeoutSeconds=1", {"authorization": "Bearer admin"})
        answer = await scene.server.handle(request)
        assert isinstance(answer, Stream)
        assert _stages(scene) == ["RequestReceived", "ResponseStarted"]
        async for _ in answer.chunks:
            pass

    assert _stages(audited(tmp_path, test)) == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


def test_a_watch_is_completed_when_its_client_disconnects(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        answer = await scene.server.handle(Request("GET", MAPS, "watch=1", {"authorization": "Bearer admin"}))
        assert isinstance(answer, Stream)
        await answer.chunks.aclose()  # type: ignore[attr-defined]

    assert _stages(audited(tmp_path, test))[-1] == "ResponseComplete"


def test_a_failure_of_the_server_is_the_stage_panic(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        def broken(*_: Any) -> None:
            raise RuntimeError("broken")

        scene.server.registry.get = broken  # type: ignore[method-assign,assignment]
        assert (await scene.get(MAPS)).code == 500

    event = audited(tmp_path, test).last()
    assert event["stage"] == "Panic"
    assert event["responseStatus"]["message"] == "APIServer panic'd: broken"


def test_a_stranger_is_audited_without_a_user(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        assert (await scene.get(MAPS, authorization="Bearer nonsense")).code == 401

    (event,) = audited(tmp_path, test).events()
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 401)


def test_a_forbidden_request_is_audited_with_the_decision(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        assert (await scene.get(MAPS, authorization="Bearer jane")).code == 403

    event = audited(tmp_path, test).last()
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_nothing_is_written_where_the_level_is_none(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        await scene.get(MAPS)

    policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"
    assert audited(tmp_path, test, policy).events() == []


class FullDisk:
    """Stands in for `os.write`, as long as the disk is full."""

    def __init__(self) -> None:
        self.full = True
        self.real = os.write

    def __call__(self, descriptor: int, data: Any) -> int:
        if self.full:
            if len(data) > 10:
                return self.real(descriptor, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.real(descriptor, data)


@pytest.mark.parametrize(("mode", "code"), [("blocking-strict", 500), ("blocking", 201), ("batch", 201)])
def test_a_full_disk_refuses_requests_in_mode_blocking_strict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: str, code: int
) -> None:
    disk = FullDisk()

    async def test(scene: Scene) -> None:
        monkeypatch.setattr(log_file.os, "write", disk)
        answer = await scene.post(MAPS, {"metadata": {"name": "a"}})
        assert answer.code == code
        if code == 500:
            assert answer.message == "Internal error occurred: failed to store audit event"
            assert (await scene.get(f"{MAPS}/a", authorization="Bearer nonsense")).code == 401
        await scene.server.world.clock.sleep(60)
        disk.full = False
        assert (await scene.get("/version")).code == 200
        await scene.server.world.clock.sleep(60)
        assert scene.last()["requestURI"] == "/version"  # no half of a line is left before it

    with caplog.at_level(logging.ERROR):
        audited(tmp_path, test, mode=mode)
    assert "audit backend failed, events lost" in caplog.text
    assert "No space left" in caplog.text


def test_events_are_counted(tmp_path: Path) -> None:
    lines: list[str] = []

    async def test(scene: Scene) -> None:
        await scene.get(MAPS)
        answer = await scene.server.handle(Request("GET", "/metrics", "", {"authorization": "Bearer admin"}))
        assert isinstance(answer, Response)
        lines.extend(answer.body.decode().splitlines())

    audited(tmp_path, test)
    assert "apiserver_audit_event_total 3" in lines
    assert 'apiserver_audit_level_total{level="RequestResponse"} 2' in lines
    assert "apiserver_audit_requests_rejected_total 0" in lines


def test_a_log_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None: ...

    with pytest.raises(StateError, match=r"audit log .*: cannot write: is a directory"):
        audited(tmp_path, test, path=str(tmp_path))
