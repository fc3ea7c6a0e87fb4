"""Objects without a namespace are in the namespace of the reconciled object."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.controllers import staged
from tests.stage.kinds import Widget, widget

from ostinato.api.meta import ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, Request, controller
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Secret


def named(name: str, namespace: str = "", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


def widget_in(namespace: str) -> Widget:
    found = widget("app")
    found.metadata.namespace = namespace
    return found


async def two_tenants(stage: Any) -> None:
    for tenant in ("red", "blue"):
        await stage.user.create(Namespace(metadata=ObjectMeta(name=tenant)))
        await stage.user.create(
            Secret(metadata=ObjectMeta(name="creds", namespace=tenant), string_data={"tenant": tenant})
        )
        await stage.user.create(named("old", tenant, tenant=tenant))
        await stage.user.create(named("gone", tenant))
    await stage.user.create(Secret(metadata=ObjectMeta(name="creds", namespace="default")))
    for name in ("old", "gone"):
        await stage.user.create(named(name, "default"))


async def everything(ctx: Context) -> dict[str, bytes]:
    """Use each verb without a namespace, and return the Secret that was read."""
    client = ctx.client
    secret = await client.get(Secret, "creds")
    assert await client.live.get(Secret, "creds") == secret
    await client.create(named("created"))
    await client.live.create(named("created-live"))
    await client.apply(named("applied"), field_manager="x")
    await ctx.apply(named("applied-by-context"))
    await client.patch(ConfigMap, "old", MergePatch({"data": {"patched": "yes"}}))
    updated = named("created", updated="yes")
    await client.update(updated)
    await client.delete(ConfigMap, "gone")
    await client.live.wait_for(ConfigMap, "created", lambda found: found is not None, timeout=5)
    return secret.data or {}


async def check_tenants(stage: Any) -> None:
    for tenant in ("red", "blue"):
        found = {each.metadata.name: each.data for each in await stage.user.list(ConfigMap, namespace=tenant)}
        found.pop("kube-root-ca.crt", None)
        assert found == {
            "old": {"tenant": tenant, "patched": "yes"},
            "created": {"updated": "yes"},
            "created-live": {},
            "applied": {},
            "applied-by-context": {},
        }
    left = {each.metadata.name for each in await stage.user.list(ConfigMap, namespace="default")}
    assert left - {"kube-root-ca.crt"} == {"old", "gone"}, "nothing was written in the namespace of the client"


@staged
async def test_each_verb_uses_the_namespace_of_the_reconciled_object(stage: Any) -> None:
    await two_tenants(stage)
    read: dict[str, bytes] = {}

    @controller(Widget, owns=[ConfigMap])
    async def widgets(each: Widget, ctx: Context) -> None:
        if each.metadata.namespace not in read:
            read[each.metadata.namespace] = (await everything(ctx))["tenant"]

    async with stage.running(widgets):
        for tenant in ("red", "blue"):
            await stage.user.create(widget_in(tenant))
        await stage.settle(5)
    assert not stage.log.texts()
    assert read == {"red": b"red", "blue": b"blue"}
    await check_tenants(stage)


@staged
async def test_a_reconciler_of_requests_uses_the_namespace_of_the_request(stage: Any) -> None:
    await two_tenants(stage)
    done: set[str] = set()

    @controller(Widget)
    async def widgets(request: Request, ctx: Context) -> None:
        if request.namespace not in done:
            done.add(request.namespace)
            await everything(ctx)

    async with stage.running(widgets):
        for tenant in ("red", "blue"):
            await stage.user.create(widget_in(tenant))
        await stage.settle(5)
    assert not stage.log.texts()
    await check_tenants(stage)


@staged
async def test_a_plain_function_uses_the_namespace_of_the_reconciled_object(stage: Any) -> None:
    await two_tenants(stage)
    read: dict[str, Any] = {}

    @controller(Widget)
    def widgets(each: Widget, ctx: Any) -> None:
        if each.metadata.namespace not in read:
            read[each.metadata.namespace] = ctx.client.get(Secret, "creds").data["tenant"]
            ctx.client.live.create(named("made"))

    async with stage.running(widgets):
        for tenant in ("red", "blue"):
            await stage.user.create(widget_in(tenant))
        await stage.settle(5)
    assert read == {"red": b"red", "blue": b"blue"}
    made = [each for each in await stage.user.list(ConfigMap) if each.metadata.name == "made"]
    assert {each.metadata.namespace for each in made} == {"red", "blue"}


@staged
async def test_a_reconcile_of_a_cluster_scoped_object_must_name_the_namespace(stage: Any) -> None:
    await two_tenants(stage)
    ended = []

    @controller(Namespace, owns=[ConfigMap])
    async def tenants(each: Namespace, ctx: Context) -> None:
        if ended:
            return
        for attempt in (
            lambda: ctx.client.get(Secret, "creds"),
            lambda: ctx.client.get(ConfigMap, "old", missing=None),
            lambda: ctx.client.live.get(Secret, "creds"),
            lambda: ctx.client.create(named("new")),
            lambda: ctx.client.delete(ConfigMap, "old"),
            lambda: ctx.client.patch(ConfigMap, "old", MergePatch({"data": None})),
            lambda: ctx.apply(named("new")),
            lambda: ctx.apply(named("new"), owner=each),
        ):
            with pytest.raises(ValueError, match=r"namespace is required; (pass |set metadata\.)namespace="):
                await attempt()
        assert (await ctx.client.get(Namespace, "red")).metadata.name == "red"
        assert (await ctx.client.get(Secret, "creds", namespace="red")).data == {"tenant": b"red"}
        ended.append(each)

    async with stage.running(tenants):
        await stage.settle(5)
    assert not stage.log.texts()
    assert ended
