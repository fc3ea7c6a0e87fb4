"""Admission webhooks as a kube-apiserver calls them: what it asked and answered, recorded, is asked and answered here.

`tests/data/webhooks/admission.json` is a list of steps: a request that sets the scene ("do"), or a case with the
request, the reviews that went out with the answers that came back, and what the client was told. A kube-apiserver
v1.36.4 was the server; what varies from run to run is a placeholder.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.stage.api import Api, Json, asking

STEPS: list[Json] = json.loads(
    (Path(__file__).parents[4] / "data" / "webhooks" / "admission.json").read_text(encoding="utf-8")
)
VOLATILE = ("uid", "creationTimestamp", "resourceVersion")
DIFFERENT = {
    "bind": "a Binding has no owners",
    "pod bind": "the same",
    "token": "a TokenRequest has no owners, and gets its defaults later",
    "clusterrole": "an empty list of rules is none",
    "scale put": "a Scale is completed from its parent before it is shown",
}


class Hook:
    """Answers as the recorded webhooks did, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Json] = []
        self.asked: list[Json] = []

    async def __call__(self, client: Json, review: bytes, seconds: int) -> bytes:
        raw = json.loads(review)
        uid = raw["request"].pop("uid")
        del raw["request"]["userInfo"]
        self.asked.append({"url": client["url"], "version": raw["apiVersion"], "request": plain(raw["request"])})
        for answer in self.answers:
            if answer["url"] == client["url"]:
                self.answers.remove(answer)
                return str(answer["answer"]).replace("${uid}", uid).encode()
        return b'{"kind": "Unexpected", "apiVersion": "v1"}'


def plain(value: Any) -> Any:
    """A value without what varies from run to run."""
    if isinstance(value, dict):
        found = {name: plain(inner) for name, inner in value.items()}
        for name in VOLATILE:
            if isinstance(found.get(name), str) and found[name]:
                found[name] = "<>"
        if isinstance(found.get("managedFields"), list):
            fields = ("manager", "apiVersion", "subresource", "operation", "fieldsV1")
            found["managedFields"] = [[entry.get(field) for field in fields] for entry in found["managedFields"]]
        return found
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        value = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", value)
        value = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", value)
        value = re.sub(r"kube-api-access-[a-z0-9]{5}", "kube-api-access-<suffix>", value)
        return "<token>" if value.startswith("eyJhbGci") else value
    return value


def told(body: Json) -> Json:
    """What an answer says: of a Status, what is not the same for all."""
    if body.get("kind") != "Status":
        return body
    return {name: value for name, value in body.items() if name not in ("kind", "apiVersion", "metadata")}


def ordered(calls: list[Json]) -> list[str]:
    """Reviews as texts; those of validating webhooks go out at the same time, in no order."""
    fields = ("url", "version", "request")
    return sorted(json.dumps({name: call[name] for name in fields}, sort_keys=True) for call in calls)


@asking
async def test_webhook_calls_match_the_recorded_ones_of_kube_apiserver(api: Api) -> None:
    hook = Hook()
    api.server.webhooks.override = hook
    wrong: dict[str, str] = {}
    for step in STEPS:
        method, path, body, content_type = step.get("do") or step["ask"]
        hook.answers, hook.asked = list(step.get("calls", ())), []
        answer = await api.ask(method, path, body, content_type=content_type, user_agent="asker/1")
        if "do" in step:
            continue
        found = (answer.code, plain(told(answer.body)), list(answer.warnings), ordered(hook.asked))
        wanted = (step["code"], told(step["body"]), step["warnings"], ordered(step["calls"]))
        for one, other in zip(found, wanted, strict=True):
            if one != other:
                wrong.setdefault(step["name"], f"{one}\n{other}")
    unexpected = {name: why for name, why in wrong.items() if name not in DIFFERENT}
    assert not unexpected, "\n".join(f"{name}:\n{why}" for name, why in unexpected.items())
    assert set(wrong) == set(DIFFERENT)
