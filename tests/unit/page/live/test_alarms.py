"""Alarms of controllers and objects that do go wrong, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.page.observed import Observed, observed

from ostinato.client import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import ConfigMap, Pod
from ostinato.manager import Manager


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"some": "text"}}


class Cleaner:
    """Adds a finalizer, and never finishes its cleanup."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.get(ConfigMap, request, missing=None)
        if found is not None and found.metadata.deletion_timestamp is None and not found.metadata.finalizers:
            patch = {"metadata": {"finalizers": ["example.dev/clean"]}}
            await ctx.client.patch(ConfigMap, request, MergePatch(patch), field_manager="cleaner")


class Flipping:
    """Writes another value into its object each time."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.get(ConfigMap, request, missing=None)
        if found is not None and request.name == "loop":
            found.data["value"] = "b" if found.data.get("value") == "a" else "a"
            await ctx.client.update(found)


class Slow:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        await asyncio.sleep(1.0)


def build(name: str, reconciler: Any) -> Any:
    def add(manager: Manager) -> None:
        manager.build(name).watch_for(ConfigMap).complete(reconciler)

    return add


def test_a_stuck_deletion_names_the_finalizer_and_the_controller_that_removes_it() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("held"))
        await page.passes(2)
        await page.client.delete(ConfigMap, "held")
        await page.passes(10)
        assert not page.alarms("stuck-deletion"), "it may take a while"
        await page.passes(10)
        (alarm,) = page.alarms("stuck-deletion")
        assert alarm.ref is not None
        assert alarm.ref.name == "held"
        assert "held by finalizer example.dev/clean" in alarm.message
        assert alarm.detail == (
            "example.dev/clean: controller cleaner, which runs, removes it when its cleanup succeeds"
        )
        await page.client.patch(ConfigMap, "held", MergePatch({"metadata": {"finalizers": None}}))
        await page.passes(15)
        assert not page.alarms("stuck-deletion")

    observed(test, build("cleaner", Cleaner()))


def test_a_finalizer_of_a_manager_that_does_not_report_is_named() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("held", finalizers=["example.dev/hold"]))
        await page.client.delete(ConfigMap, "held")
        await page.passes(20)
        (alarm,) = page.alarms("stuck-deletion")
        assert alarm.detail == (
            "example.dev/hold: a-user added it, and no controller of that name reports to this page"
        )

    observed(test)


def test_a_hot_loop_names_the_field() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("loop"))
        await page.passes(10)
        (alarm,) = page.alarms("hot-loop")
        assert (alarm.controller, alarm.ref and alarm.ref.name) == ("flipping", "loop")
        assert "flipping writes ConfigMap default/loop again and again: data.value: " in alarm.message
        await page.client.delete(ConfigMap, "loop")
        await page.passes(200)
        assert not page.alarms("hot-loop")

    observed(test, build("flipping", Flipping()))


def test_a_backlog_has_its_reason_and_ends_with_it() -> None:
    async def test(page: Observed) -> None:
        for number in range(20):
            await page.client.create(config_map(f"c{number}"))
        await page.passes(8)
        (alarm,) = page.alarms("backlog")
        assert alarm.controller == "slow"
        assert alarm.message.endswith("its one worker is busy, and a reconcile takes 1.0 s")
        await page.passes(30)
        assert not page.alarms("backlog")

    observed(test, build("slow", Slow()))


class Stale:
    """Updates an object that another writer changes in between."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.live.get(ConfigMap, request, missing=None)
        if found is not None and request.name == "contested":
            await ctx.sleep(0.5)
            await ctx.client.live.patch(ConfigMap, request, MergePatch({"data": {"n": str(ctx.reconcile.id)}}))
            await ctx.client.update(found)


def test_conflicts_name_the_keys_that_another_writer_changes() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("contested"))
        await page.passes(20)
        (alarm,) = page.alarms("conflicts")
        assert alarm.controller == "stale"
        assert alarm.message == "stale conflicts with another writer: default/contested"
        assert "the object has been modified" in alarm.detail

    observed(test, build("stale", Stale()))


class Writer:
    """Writes another ConfigMap for each."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        if request.name == "a":
            await ctx.client.create(config_map("b"))


def test_a_webhook_that_cannot_be_called_is_named_with_the_controller_that_needs_it() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("a"))
        await page.client.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "broken"},
                "webhooks": [
                    {
                        "name": "check.example.dev",
                        "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
                        "rules": [
                            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
                        ],
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "timeoutSeconds": 1,
                    }
                ],
            }
        )
        await page.passes(10)
        (alarm,) = page.alarms("webhook")
        assert (alarm.severity, alarm.controller) == ("error", "writer")
        assert alarm.message == "webhook check.example.dev cannot be called; writer cannot write"

    observed(test, build("writer", Writer()))


def test_a_lease_that_changes_its_holder_without_a_release_is_named() -> None:
    async def test(page: Observed) -> None:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "election"}}
        await page.client.create({**lease, "spec": {"holderIdentity": "first"}})
        await page.passes(2)
        for holder in ("", "second"):
            await page.client.patch(Lease, "election", MergePatch({"spec": {"holderIdentity": holder or None}}))
            await page.passes(2)
        assert not page.alarms("lease"), "it was released"
        await page.client.patch(Lease, "election", MergePatch({"spec": {"holderIdentity": "third"}}))
        await page.passes(2)
        (alarm,) = page.alarms("lease")
        assert alarm.message == "second lost Lease default/election; third holds it now"

    observed(test)


def test_a_crash_loop_names_the_container_and_ends_with_it() -> None:
    async def test(page: Observed) -> None:
        await page.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        spec = {"containers": [{"name": "main", "image": "i"}], "nodeName": "n"}
        for name in ("a", "b", "c"):  # several, so that the cache packs them
            await page.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
        await set_state(page, {"waiting": waiting})
        await page.passes(4)
        (alarm,) = page.alarms("crash-loop")
        assert alarm.message == "Pod default/c: a container crashes again and again"
        assert alarm.detail == "main: CrashLoopBackOff back-off 10s restarting failed container"
        await set_state(page, {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        await page.passes(15)
        assert not page.alarms("crash-loop")

    async def set_state(page: Observed, state: dict[str, Any]) -> None:
        container = {"name": "main", "image": "i", "imageID": "", "restartCount": 3, "ready": False, "state": state}
        patch = MergePatch({"status": {"phase": "Running", "containerStatuses": [container]}})
        await page.client.patch(Pod, "c", patch, subresource="status")

    observed(test)


def test_single_throttled_requests_are_no_alarm() -> None:
    async def test(page: Observed) -> None:
        for _ in range(4):
            page.reporter.throttled("widgets")
        await page.passes(60)
        page.reporter.throttled("widgets")
        await page.passes(2)
        assert not page.alarms("throttled")
        for _ in range(4):
            page.reporter.throttled("widgets")
        await page.passes(2)
        (alarm,) = page.alarms("throttled")
        assert (alarm.controller, alarm.message) == ("widgets", "the server throttles widgets (429)")
        assert alarm.detail.startswith("5 requests were rejected and sent again")

    observed(test)
