"""--allow-privileged=false: privileged containers are rejected wherever a Pod spec is."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Api
from tests.stage.server import on_a_server

from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.world import Simulation

PRIVILEGED = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
PLAIN = {"name": "d", "image": "i", "securityContext": {"privileged": False}}
POD = {"containers": [PLAIN, PRIVILEGED], "initContainers": [{**PRIVILEGED, "name": "e"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {**POD, "restartPolicy": "Never"}}
ALWAYS = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": ALWAYS}
DENIED = "securityContext.privileged: Forbidden: disallowed by cluster policy"

OBJECTS: list[tuple[str, dict[str, Any], str]] = [
    ("/api/v1/namespaces/default/pods", {"spec": POD}, "spec"),
    ("/api/v1/namespaces/default/podtemplates", {"template": ALWAYS}, "template.spec"),
    ("/apis/apps/v1/namespaces/default/deployments", {"spec": SELECTED}, "spec.template.spec"),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}},
        "spec.jobTemplate.spec.template.spec",
    ),
]


async def _rejected(_: Simulation, server: Server) -> None:
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    api = Api(server)
    for path, obj, spec in OBJECTS:
        answer = await api.post(path, {"metadata": {"name": "a"}, **obj})
        assert answer.code == 422, (path, answer.body)
        fields = [f"{spec}.initContainers[0].{DENIED}", f"{spec}.containers[1].{DENIED}"]
        assert answer.message.split(" is invalid: ")[1] == f"[{', '.join(fields)}]"
    plain = {"metadata": {"name": "a"}, "spec": {"containers": [PLAIN]}}
    assert (await api.post("/api/v1/namespaces/default/pods", plain)).code == 201


test_privileged_containers_are_rejected = on_a_server(
    _rejected, admission=AdmissionSettings(allow_privileged=False, disabled=("ServiceAccount",))
)


async def _allowed(_: Simulation, server: Server) -> None:
    server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    made = await Api(server).post("/api/v1/namespaces/default/pods", {"metadata": {"name": "a"}, "spec": POD})
    assert made.code == 201


test_privileged_containers_are_allowed_by_default = on_a_server(
    _allowed, admission=AdmissionSettings(disabled=("ServiceAccount",))
)
