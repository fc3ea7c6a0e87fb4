"""Admission handlers, called by the API server over HTTPS."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ostinato import Client, CustomResource, ObjectMeta, Struct, on
from ostinato.api.errors import APIError
from ostinato.client import MergePatch
from ostinato.frontends.handlers.admission import AdmissionError, hook_of
from ostinato.frontends.handlers.operator import Handlers
from ostinato.testing import Cluster
from ostinato.webhook import UrlEndpoint


class PageSpec(Struct):
    text: str = ""
    lines: int = 0


class Page(CustomResource, group="example.dev", version="v1"):
    spec: PageSpec


@on.validate(Page, operations=["CREATE", "UPDATE", "DELETE"])
def check(spec: Any, warnings: list[str], operation: str, userinfo: Any) -> None:
    if operation == "DELETE":
        raise AdmissionError(f"{bool(userinfo['username'])}: kept", code=409)
    if spec.get("text") == "wrong":
        raise AdmissionError("spec.text: wrong", code=422)
    if not spec.get("text"):
        warnings.append("spec.text: is empty")


@on.validate(Page, field="spec.text", value="forbidden")
async def forbid() -> None:
    raise AdmissionError("no")


@on.create(Page)
async def created() -> None: ...


@on.mutate(Page, when=lambda spec, **_: "text" in spec)
async def count(spec: Any, patch: Any) -> None:
    patch.spec["lines"] = len(spec["text"].splitlines())


async def test_the_server_calls_admission_handlers(cluster: Cluster, client: Client) -> None:
    webhooks = on.webhooks(__name__, endpoint=UrlEndpoint("https://127.0.0.1:1"), name="pages")
    await cluster.manager().start(on.handlers(__name__), webhooks)

    def page(text: str) -> Page:
        return Page(metadata=ObjectMeta(name="one"), spec=PageSpec(text=text))

    made = await client.create(page("a\nb\nc"))
    assert made.spec.lines == 3
    with pytest.raises(APIError, match=r"spec\.text: wrong") as raised:
        await client.patch(Page, "one", MergePatch({"spec": {"text": "wrong"}}))
    assert raised.value.code == 422
    with pytest.raises(APIError, match="no") as raised:
        await client.patch(Page, "one", MergePatch({"spec": {"text": "forbidden"}}))
    assert raised.value.code == 403
    with pytest.raises(APIError, match="True: kept") as raised:
        await client.delete(Page, "one")
    assert raised.value.code == 409


def test_a_hook_needs_the_whole_kind() -> None:
    handlers = Handlers("test")

    @on.validate("pages", registry=handlers)
    def check(**_: Any) -> None: ...

    with pytest.raises(TypeError, match=r"check: the rules of a webhook need the whole kind"):
        hook_of(handlers.handlers[0])


def test_a_module_without_admission_handlers_has_no_webhooks() -> None:
    module = type(sys)("without")
    module.__dict__["__handlers__"] = Handlers("test")
    with pytest.raises(LookupError, match="no admission handlers"):
        on.webhooks(module, endpoint=UrlEndpoint("https://127.0.0.1:1"))
