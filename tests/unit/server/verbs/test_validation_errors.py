"""Validation errors show empty lists and maps as the client sent them, though they are not stored."""

from __future__ import annotations

import pytest
from tests.stage.api import Api, asking

APPS = "/apis/apps/v1/namespaces/default/deployments"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
POD = {"containers": [{"name": "c", "image": "i"}]}


@pytest.mark.parametrize(("labels", "text"), [({}, "{}"), (None, "null")])
def test_an_empty_map_is_shown_as_it_was_sent(labels: dict[str, str] | None, text: str) -> None:
    @asking
    async def test(api: Api) -> None:
        template = {"metadata": {"labels": labels}, "spec": POD}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        answer = await api.post(APPS, {"metadata": {"name": "d"}, "spec": spec})
        where = "spec.template.metadata.labels"
        assert f"{where}: Invalid value: {text}: `selector` does not match template `labels`" in answer.message

    test()


@asking
async def test_an_empty_map_in_a_value_is_shown_too(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2"}}}
    await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    spec["resources"] = {"requests": {"storage": "1Gi"}, "limits": {}}
    answer = await api.put(f"{CLAIMS}/c", {"metadata": {"name": "c"}, "spec": spec})
    assert '+  "Limits": {},\n' in answer.message


@asking
async def test_a_rejected_write_leaves_shared_managed_fields_unchanged(api: Api) -> None:
    path, container = "/api/v1/namespaces/default/podtemplates", {"name": "c", "image": "i"}
    limited = {**container, "resources": {"limits": {"cpu": "1"}}}
    body = {"metadata": {"name": "a"}, "template": {"spec": {"containers": [limited]}}}
    before = (await api.post(path, body)).body["metadata"]["managedFields"][0]["fieldsV1"]
    change = {"template": {"spec": {"containers": [container], "restartPolicy": "Never!"}}}
    assert (await api.merge(f"{path}/a", change)).code == 422
    after = await api.post(path, {**body, "metadata": {"name": "b"}})
    assert after.body["metadata"]["managedFields"][0]["fieldsV1"] == before
