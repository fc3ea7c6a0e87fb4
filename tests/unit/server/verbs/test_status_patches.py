"""A patch of the status decodes and validates what it changes, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, asking

from ostinato.server.schema.decoding.builtin import Struct, _Unknown

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}], "automountServiceAccountToken": False},
}
READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


async def prepare(api: Api) -> dict[str, Any]:
    account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
    assert (await api.post("/api/v1/namespaces/default/serviceaccounts", account)).code == 201
    answer = await api.post(PODS, POD)
    assert answer.code == 201, answer.message
    return answer.body


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
def test_a_patch_of_the_status_does_not_decode_the_spec(media: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    read = Struct.read

    def counted(struct: Struct, value: Any, unknown: _Unknown) -> dict[str, Any]:
        decoded.append(struct.name)
        return read(struct, value, unknown)

    @asking
    async def talk(api: Api) -> None:
        made = await prepare(api)
        monkeypatch.setattr(Struct, "read", counted)
        answer = await api.ask("PATCH", f"{PODS}/a/status", READY, content_type=media)
        assert answer.code == 200, answer.message
        assert {"PodStatus", "PodCondition"} <= {*decoded}
        assert "Container" not in decoded
        assert answer.body["spec"] == made["spec"]
        assert [*answer.body] == [*made], "the order of fields"
        assert answer.body["status"]["phase"] == "Running"

    talk()


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
def test_a_patch_of_the_status_changes_nothing_else(media: str) -> None:
    @asking
    async def talk(api: Api) -> None:
        made = await prepare(api)
        change = {**READY, "spec": {"hostNetwork": True, "odd": 1}}
        answer = await api.ask("PATCH", f"{PODS}/a/status", change, content_type=media)
        assert answer.code == 200, answer.message
        assert answer.warnings == ('299 - "unknown field \\"spec.odd\\""',)
        assert answer.body["spec"] == made["spec"]
        assert (await api.get(f"{PODS}/a")).body == answer.body

    talk()


def test_what_a_patch_of_the_status_shares_with_the_stored_object_stays_tracked() -> None:
    @asking
    async def talk(api: Api) -> None:
        made = await prepare(api)
        for phase in ("Running", "Failed"):
            change = {"status": {"phase": phase}}
            answer = await api.ask("PATCH", f"{PODS}/a/status", change, content_type=MERGE)
        first, second = answer.body["metadata"]["managedFields"]
        assert first["fieldsV1"] == made["metadata"]["managedFields"][0]["fieldsV1"]
        assert second["fieldsV1"] == {"f:status": {"f:phase": {}}}

    talk()
