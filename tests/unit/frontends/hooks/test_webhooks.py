"""Webhooks of hooks: answers to reviews, conversion chains, registration."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.frontends.hooks.stage import HookDirectory, config_map

from ostinato.client import Client
from ostinato.client.views import Unstructured
from ostinato.frontends.hooks import Hooks
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.webhooks.chain import Chains
from ostinato.frontends.hooks.webhooks.dispatcher import CONVERSION, HookDispatcher, admission_path
from ostinato.frontends.hooks.webhooks.registration import configurations, convert_by, register
from ostinato.testing import ClusterManager
from ostinato.webhook.configuration import UrlEndpoint
from ostinato.webhook.dispatch import WebhookRequest

pytestmark = pytest.mark.ostinato(rbac=False)

ENDPOINT = UrlEndpoint("https://127.0.0.1:9680")
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u1", "operation": "CREATE", "name": "a", "object": config_map("a")},
}


class Stage:
    """Hooks that are loaded and answer reviews, without a server."""

    def __init__(self, directory: HookDirectory, manager: ClusterManager) -> None:
        self.directory = directory
        self._manager = manager
        self.hooks: list[Hook] = []
        self.dispatcher: HookDispatcher | None = None

    async def start(self) -> None:
        runnable = Hooks(self.directory.root)
        # the server needs sockets, which virtual time does not have
        with pytest.MonkeyPatch.context() as patch:

            async def no_server(*_: Any) -> None: ...

            patch.setattr("ostinato.frontends.hooks.webhooks.serving.HookWebhooks.serve", no_server)
            await self._manager.start(runnable)
        self.hooks = list(runnable.engine.hooks.values())
        self.dispatcher = HookDispatcher(self._manager.world, runnable.engine.execute)
        self.dispatcher.use(self.hooks)

    async def review(self, path: str, review: Any) -> Any:
        assert self.dispatcher is not None

        async def read(_: int) -> bytes:
            return json.dumps(review).encode()

        answer = await self.dispatcher.handle(WebhookRequest(path, "application/json", read))
        return json.loads(answer.body)["response"]

    async def admit(self) -> Any:
        hook = self.hooks[0]
        return await self.review(admission_path(hook, hook.config.admission[0]), REVIEW)


@pytest.fixture
def stage(tmp_path: Path, manager: ClusterManager) -> Stage:
    return Stage(HookDirectory(tmp_path), manager)


def binding(kind: str) -> str:
    rules = "[{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]"
    return f"{{configVersion: v1, {kind}: [{{name: check.maps.example.com, rules: {rules}}}]}}"


async def test_a_hook_allows_and_denies(stage: Stage) -> None:
    answers = ['{"allowed": true, "warnings": ["careful"]}', '{"allowed": false, "message": "no"}', "", "{broken"]
    written = "\n".join(
        f"[[ $N == {n} ]] && echo '{text}' > $VALIDATING_RESPONSE_PATH" for n, text in enumerate(answers)
    )
    stage.directory.add("a.sh", binding("kubernetesValidating"), written + "\ntrue")
    await stage.start()
    assert await stage.admit() == {"uid": "u1", "allowed": True, "warnings": ["careful"]}
    denied = await stage.admit()
    assert (denied["allowed"], denied["status"]["code"], denied["status"]["message"]) == (False, 403, "no")
    assert (await stage.admit())["status"]["message"] == "hook a.sh gave no answer"
    assert (await stage.admit())["status"]["message"] == "Hook failed"
    [context] = stage.directory.runs("a.sh")[0]
    assert context == {
        "binding": "check.maps.example.com",
        "type": "Validating",
        "review": {"request": {**REVIEW["request"], "oldObject": None, "options": None}},  # type: ignore[dict-item]
    }


async def test_a_hook_patches(stage: Stage) -> None:
    patch = base64.b64encode(b'[{"op":"add","path":"/data","value":{"a":"b"}}]').decode()
    answer = f'echo \'{{"allowed": true, "patch": "{patch}"}}\' > $ADMISSION_RESPONSE_PATH'
    stage.directory.add("a.sh", binding("kubernetesMutating"), answer)
    await stage.start()
    assert await stage.admit() == {"uid": "u1", "allowed": True, "patch": patch, "patchType": "JSONPatch"}
    assert stage.directory.contexts("a.sh")[0]["type"] == "Mutating"


def conversions(*pairs: tuple[str, str]) -> str:
    rules = ", ".join(f"{{fromVersion: {before}, toVersion: {after}}}" for before, after in pairs)
    name = "widgets.example.dev"
    return (
        "{configVersion: v1, kubernetesCustomResourceConversion: "
        f"[{{name: steps, crdName: {name}, conversions: [{rules}]}}]}}"
    )


def step(version: str) -> str:
    return (
        f"""jq -c '{{convertedObjects: [.[0].review.request.objects[] | .apiVersion = "example.dev/{version}" """
        f"""| .path += "{version}"]}}' $BINDING_CONTEXT_PATH > $CONVERSION_RESPONSE_PATH"""
    )


async def test_objects_are_converted_by_a_chain_of_hooks(stage: Stage) -> None:
    pytest.importorskip("shutil").which("jq") or pytest.skip("the hook needs the program jq")
    stage.directory.add("a.sh", conversions(("v1", "v2")), step("v2"))
    stage.directory.add("b.sh", conversions(("example.dev/v2", "example.dev/v3")), step("v3"))
    await stage.start()
    objects = [{"apiVersion": "example.dev/v1", "kind": "Widget", "path": ""}]
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "u2", "desiredAPIVersion": "example.dev/v3", "objects": objects},
    }
    answer = await stage.review(CONVERSION + "widgets.example.dev", review)
    assert answer["convertedObjects"] == [{"apiVersion": "example.dev/v3", "kind": "Widget", "path": "v2v3"}]
    [context] = stage.directory.contexts("b.sh")
    assert (context["type"], context["fromVersion"], context["toVersion"]) == (
        "Conversion",
        "example.dev/v2",
        "example.dev/v3",
    )
    review["request"]["desiredAPIVersion"] = "example.dev/v9"  # type: ignore[index]
    answer = await stage.review(CONVERSION + "widgets.example.dev", review)
    assert answer["result"]["message"] == "Conversion widgets.example.dev to example.dev/v9 was not successful"


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        ("v1", "v2", ["a"]),
        ("g/v1", "g/v3", ["a", "b"]),
        ("v1", "v4", ["direct"]),
        ("v3", "v1", []),
        ("other/v1", "g/v3", ["a", "b"]),
        ("v4", "v1", ["back"]),
    ],
)
def test_the_shortest_way_is_found(before: str, after: str, way: list[str]) -> None:
    chains: Chains[str] = Chains()
    for one, other, name in (
        ("v1", "v2", "a"),
        ("v2", "g/v3", "b"),
        ("v3", "v4", "c"),
        ("v1", "v4", "direct"),
        ("v4", "v1", "back"),
    ):
        chains.add(one, other, name)
    found = [each.handler for each in chains.find(before, after)]
    assert found == (["c", "back"] if (before, after) == ("v3", "v1") else way)


async def test_webhooks_are_registered_and_keep_their_bundle(stage: Stage, client: Client) -> None:
    stage.directory.add("a.sh", binding("kubernetesValidating"))
    await stage.start()
    wanted = configurations(stage.hooks, "hooks", ENDPOINT)
    await register(client, wanted, {})
    view = Unstructured.of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    found = await client.get(view, "hooks")
    [entry] = found["webhooks"]
    assert entry["clientConfig"]["url"] == "https://127.0.0.1:9680/hooks/validating/a.2e.sh/check.maps.example.com"
    assert (entry["failurePolicy"], entry["sideEffects"], entry["timeoutSeconds"]) == ("Fail", "None", 10)
    entry["clientConfig"]["caBundle"] = base64.b64encode(b"bundle").decode()
    await register(client, wanted, {"ValidatingWebhookConfiguration": entry["clientConfig"]["caBundle"]})
    assert await convert_by(client, "widgets.example.dev", ENDPOINT) is False
