"""Kinds, reviews, and short ways to post them to hooks in virtual time."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ostinato.api.object import CustomResource
from ostinato.api.patch import json_patch
from ostinato.api.struct import Struct
from ostinato.webhook import Dispatcher, Limits, WebhookRequest, WebhookResponse
from ostinato.webhook.dispatch import Hook
from ostinato.world import Simulation, World

Json = dict[str, Any]


class WidgetSpec(Struct):
    replicas: int | None = None
    image: str = ""
    tags: list[str] = msgspec.field(default_factory=list)


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)


class WidgetV2Spec(Struct):
    count: int = 0


class WidgetV2(CustomResource, group="example.dev", version="v2", kind="Widget"):
    spec: WidgetV2Spec = msgspec.field(default_factory=WidgetV2Spec)


class WidgetV3(CustomResource, group="example.dev", version="v3", kind="Widget"):
    amount: str = ""


def widget(name: str = "a", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "default", "uid": "u-1"}
    return {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def admission_review(document: Json | None, *, old: Json | None = None, operation: str = "CREATE", **more: Any) -> Json:
    """A review as kube-apiserver sends it."""
    known = document or old or {}
    group, _, version = known.get("apiVersion", "example.dev/v1").rpartition("/")
    kind = {"group": group, "version": version, "kind": known.get("kind", "Widget")}
    resource = {"group": group, "version": version, "resource": kind["kind"].lower() + "s"}
    metadata = known.get("metadata", {})
    request = {
        "uid": "705ab4f5",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", ""),
        "operation": operation,
        "userInfo": {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["all"]}},
        "object": document,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"},
        **more,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def conversion_review(objects_: list[Any], version: str = "example.dev/v2", **more: Any) -> Json:
    request = {"uid": "c-1", "desiredAPIVersion": version, "objects": objects_, **more}
    return {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}


class Answered:
    """A reply, read."""

    def __init__(self, reply: WebhookResponse) -> None:
        self.http = reply.status
        self.text = reply.body.decode()
        self.review: Json = msgspec.json.decode(reply.body) if reply.content_type == "application/json" else {}
        self.response: Json = self.review.get("response", {})
        self.status: Json = self.response.get("status", {})
        self.allowed: bool | None = self.response.get("allowed")
        self.message: str = self.status.get("message", "") or self.response.get("result", {}).get("message", "")
        self.warnings: list[str] = self.response.get("warnings", [])

    @property
    def patch(self) -> list[Json]:
        assert ("patch" in self.response) == (self.response.get("patchType") == "JSONPatch")
        patch: list[Json] = msgspec.json.decode(base64.b64decode(self.response.get("patch", "W10=")))
        return patch

    def applied_to(self, document: Json) -> Json:
        result: Json = json_patch(document, self.patch)
        return result


def posted(
    review: Json | bytes,
    path: str = "/validate-example-dev-v1-widget",
    *,
    content_type: str = "application/json",
    seconds: float | None = None,
    read: Callable[[int], Awaitable[bytes]] | None = None,
) -> WebhookRequest:
    async def whole(most: int) -> bytes:
        return review if isinstance(review, bytes) else msgspec.json.encode(review)

    return WebhookRequest(path, content_type, read or whole, seconds)


def path_of(hook: Hook) -> str:
    return getattr(hook, "path", "/convert")


async def post(world: World, hook: Hook, review: Json | bytes, limits: Limits | None = None) -> Answered:
    dispatcher = Dispatcher(world, limits=limits)
    dispatcher.add([hook])
    return Answered(await dispatcher.handle(posted(review, path_of(hook))))


def asked(hook: Hook, review: Json | bytes) -> Answered:
    """What the hook says to the review."""
    simulation = Simulation(seed=1)
    return simulation.run(post(simulation, hook, review))
