"""Alarms from the counters of the API server, for requests of users who report nothing to the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.page.browser import paged
from tests.unit.page.live.test_alarms import Writer, build, config_map
from tests.unit.page.observed import Observed, observed

from ostinato.api.errors import APIError, InternalError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ObjectMeta
from ostinato.cli.page.asking import PageClient, asked
from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.kinds.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from ostinato.page.live import server_alarms
from ostinato.page.live.server_alarms import ServerAlarms
from ostinato.page.watching.cluster import Cluster, Scope
from ostinato.page.watching.server_metrics import REJECTIONS, THROTTLED, Reading, Series
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World

JANE = ("jane", ("system:authenticated",))
RBAC = "rbac.authorization.k8s.io"
CANNOT = "metrics of the API server (/metrics)"


class Looking:
    """Reads the counters as the page does. `open`: whether someone looks at it."""

    def __init__(self, page: Observed, client: Client | None = None) -> None:
        self.open = True
        cluster = page.cluster
        if client is not None:
            cluster = Cluster(client, page.world, page.history.changes, Scope())
        self.alarms = ServerAlarms(page.world.clock, cluster, page.history.alarms, lambda: self.open)

    @property
    def denied(self) -> list[str]:
        return [each.what for each in self.alarms.denied]


@asynccontextmanager
async def looking(page: Observed, client: Client | None = None) -> AsyncIterator[Looking]:
    found = Looking(page, client)
    task = asyncio.get_running_loop().create_task(found.alarms.run())
    try:
        await page.passes(2)  # the first reading
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def webhooks(kind: str = "Validating", resource: str = "configmaps", group: str = "", **more: Any) -> dict[str, Any]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["*"]}
    webhook = {
        "name": "check.example.dev",
        "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "broken"},
        "webhooks": [webhook],
    }


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_dead_webhook_that_rejects_a_users_write_is_named(kind: str) -> None:
    async def test(page: Observed) -> None:
        await page.client.create(webhooks(kind))
        async with looking(page):
            for name in ("a", "b"):
                with pytest.raises(InternalError, match="failed calling webhook"):
                    await page.client.create(config_map(name))
            await page.passes(6)
            (alarm,) = page.alarms("webhook")
            assert (alarm.id, alarm.severity, alarm.controller) == ("webhook/check.example.dev", "error", None)
            assert alarm.message == "webhook check.example.dev cannot be called; writes to configmaps are rejected"
            assert alarm.detail == f"2 requests in the last minute (CREATE); {kind}WebhookConfiguration broken"
            assert alarm.ref is not None
            assert (alarm.ref.kind, alarm.ref.name) == (f"{kind}WebhookConfiguration", "broken")
            await page.passes(70)
            assert not page.alarms("webhook"), "it has ended"

    observed(test)


def test_a_dead_webhook_that_is_ignored_is_a_warning() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(webhooks(failurePolicy="Ignore"))
        async with looking(page):
            await page.client.create(config_map("a"))
            await page.passes(6)
            (alarm,) = page.alarms("webhook")
            assert alarm.severity == "warning"
            assert alarm.message == (
                "webhook check.example.dev cannot be called; writes to configmaps are let through "
                "(failurePolicy Ignore)"
            )
            assert alarm.detail == "1 request in the last minute; ValidatingWebhookConfiguration broken"

    observed(test)


def test_a_webhook_that_denies_a_write_is_not_an_alarm() -> None:
    async def deny(client: Any, review: bytes, seconds: int) -> bytes:
        uid = review.partition(b'"uid":"')[2].partition(b'"')[0]
        kind = b'"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"'
        return b"{" + kind + b',"response":{"uid":"' + uid + b'","allowed":false}}'

    async def test(page: Observed) -> None:
        page.server.webhooks.override = deny
        await page.client.create(webhooks())
        async with looking(page):
            with pytest.raises(APIError, match="denied the request"):
                await page.client.create(config_map("a"))
            await page.passes(10)
            assert not page.alarms("webhook")

    observed(test)


def test_the_alarm_of_a_controller_keeps_its_text() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("a"))
        await page.client.create(webhooks())
        async with looking(page):
            await page.passes(10)
            (alarm,) = page.alarms("webhook")
            assert alarm.message == "webhook check.example.dev cannot be called; writer cannot write"

    observed(test, build("writer", Writer()))


def test_requests_of_a_user_that_are_rejected_with_429_are_an_alarm() -> None:
    async def test(page: Observed) -> None:
        await allow(page.client, PolicyRule(api_groups=["*"], resources=["*"], verbs=["*"]))
        page.server.flow.close()
        level = page.server.flow.levels.by_name["global-default"]
        level.set.configure(exempt=False, limit=0, queues=level.queues, length_limit=level.length_limit)
        jane = Client(InProcessTransport(page.server, user=JANE), world=page.world, namespace="default")
        async with looking(page):
            task = asyncio.get_running_loop().create_task(jane.get(ConfigMap, "a"))
            await page.passes(22)  # a request waits for 15 seconds
            (alarm,) = page.alarms("throttled")
            assert alarm.severity == "warning"
            assert alarm.message == ("1 request of flow schema global-default was rejected with 429 in the last minute")
            assert alarm.detail.startswith("priority level global-default: time-out; ")
            assert alarm.ref is not None
            assert (alarm.ref.kind, alarm.ref.name) == ("FlowSchema", "global-default")
            await page.passes(16)
            (alarm,) = page.alarms("throttled")
            assert alarm.message.startswith("2 requests of flow schema global-default were rejected"), "sent again"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await jane.close()

    observed(test)


async def allow(client: Client, rule: PolicyRule) -> None:
    """Allow something to jane."""
    await client.create(ClusterRole(metadata=ObjectMeta(name="jane"), rules=[rule]))
    await client.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name="jane"),
            role_ref=RoleRef(api_group=RBAC, kind="ClusterRole", name="jane"),
            subjects=[Subject(kind="User", name="jane", api_group=RBAC)],
        )
    )


def counted(page: Observed, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the path of each request for metrics."""
    found: list[str] = []
    handle = page.server.handle

    async def counting(request: Any) -> Any:
        if request.path == "/metrics":
            found.append(request.path)
        return await handle(request)

    monkeypatch.setattr(page.server, "handle", counting)
    return found


def test_nothing_is_read_while_no_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(page: Observed) -> None:
        reads = counted(page, monkeypatch)
        async with looking(page) as found:
            await page.passes(18)
            assert len(reads) == 4, "every five seconds"
            found.open = False
            await page.passes(100)
            assert len(reads) == 4
            found.open = True
            await page.passes(2)
            assert len(reads) == 5

    observed(test)


def test_without_permission_the_page_says_so_and_tries_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(page: Observed) -> None:
        reads = counted(page, monkeypatch)
        jane = Client(InProcessTransport(page.server, user=JANE), world=page.world)
        async with looking(page, jane) as found:
            assert found.denied == [CANNOT]
            assert not reads, "it has asked whether it may"
            await page.passes(200)
            assert len(reads) == 3
            assert found.denied == [CANNOT]
            assert 'User "jane" cannot get path "/metrics"' in found.alarms.denied[0].why.replace("\\", "")
            await allow(page.client, PolicyRule(non_resource_urls=["/metrics"], verbs=["get"]))
            await page.passes(61)
            assert found.denied == []
            await page.passes(10)
            assert len(reads) > 4
        await jane.close()

    observed(test)


@pytest.mark.parametrize(("others", "denied"), [(0, []), (2, ["metrics of 2 other API servers (/metrics)"])])
def test_the_page_says_that_it_reads_the_counters_of_one_of_several_servers(others: int, denied: list[str]) -> None:
    async def test(page: Observed) -> None:
        for number in range(others):
            await page.client.create(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "name": f"kubernetes-{number}",
                        "namespace": "default",
                        "labels": {"kubernetes.io/service-name": "kubernetes"},
                    },
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": [f"192.0.2.{number + 1}"]}],
                }
            )
        async with looking(page) as reader:
            assert reader.denied == denied

    observed(test)


def test_a_server_that_fails_is_asked_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(page: Observed) -> None:
        reads = 0

        async def fail(client: Client) -> Reading:
            nonlocal reads
            reads += 1
            raise InternalError.of("out of order")

        monkeypatch.setattr(server_alarms, "read_counters", fail)
        async with looking(page) as found:
            await page.passes(600)
            assert reads <= 13
            assert found.denied == []
        assert "unable to read metrics of the API server" in caplog.text

    observed(test)


# Servers that are restarted, and several of them


def rejected(count: float, process: str = "1", **labels: str) -> Reading:
    given = {
        "error_type": "calling_webhook_error",
        "name": "w",
        "operation": "CREATE",
        "rejection_code": "503",
        "type": "validating",
    }
    return Reading(process, {Series(REJECTIONS, tuple(sorted((given | labels).items()))): count})


def read_in_turn(*readings: tuple[float, Reading]) -> list[str]:
    """Return the details of the alarms after some readings, each after a number of seconds."""
    found: list[str] = []

    async def test(page: Observed) -> None:
        alarms = Looking(page).alarms
        for seconds, reading in readings:
            await page.passes(seconds)
            alarms.receive(reading)
        found.extend(each.detail for each in page.alarms("webhook"))

    observed(test)
    return found


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([(0, rejected(7))], []),
        ([(0, rejected(7)), (5, rejected(7))], []),
        ([(0, rejected(7)), (5, rejected(9))], ["2 requests in the last minute (CREATE)"]),
        ([(0, rejected(7)), (5, rejected(8)), (5, rejected(11))], ["4 requests in the last minute (CREATE)"]),
        ([(0, rejected(7)), (5, rejected(2))], []),  # a reset
        ([(0, rejected(7)), (5, rejected(2)), (5, rejected(3))], ["1 request in the last minute (CREATE)"]),
        ([(0, rejected(7)), (5, rejected(2, "2")), (5, rejected(7)), (5, rejected(2, "2"))], []),  # two servers
        (
            [(0, rejected(7)), (5, rejected(2, "2")), (5, rejected(8)), (5, rejected(4, "2"))],
            ["3 requests in the last minute (CREATE)"],
        ),
        ([(0, Reading("1", {})), (5, rejected(1))], ["1 request in the last minute (CREATE)"]),  # a new series
        ([(0, rejected(7)), (90, rejected(9))], []),  # no one looked in between
        ([(0, rejected(7)), (5, rejected(9, error_type="no_error"))], []),
        (
            [(0, Reading("1", {})), (5, rejected(1, error_type="apiserver_internal_error"))],
            [
                "1 request in the last minute (CREATE); its patch cannot be applied, or it does not support dry run",
            ],
        ),
    ],
)
def test_a_counter_that_grows_in_the_same_server_is_an_alarm(
    readings: list[tuple[float, Reading]], expected: list[str]
) -> None:
    assert read_in_turn(*readings) == expected


def test_a_webhook_that_is_not_watched_is_named_without_its_resources() -> None:
    async def test(page: Observed) -> None:
        alarms = Looking(page).alarms
        alarms.receive(rejected(1))
        alarms.receive(rejected(2))
        (alarm,) = page.alarms("webhook")
        assert alarm.message == "webhook w cannot be called; writes to the resources in its rules are rejected"

    observed(test)


def test_requests_whose_client_did_not_wait_are_not_throttled() -> None:
    async def test(page: Observed) -> None:
        labels = (("flow_schema", "f"), ("priority_level", "l"), ("reason", "cancelled"))
        alarms = Looking(page).alarms
        for count in (1.0, 2.0):
            alarms.receive(Reading("1", {Series(THROTTLED, labels): count}))
        assert not page.alarms("throttled")

    observed(test)


# Of a page


@asynccontextmanager
async def page_with_socket(tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[PageClient, Client]]:
    socket = tmp_path / "page.sock"
    async with paged(socket=socket, **settings) as (_, client):
        world = World.real(workers=1)
        async with asked(socket, world) as page:
            yield page, client
        world.executor.close()


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a condition holds, for 20 seconds at most."""
    for _ in range(400):
        if found := await condition():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("the condition does not hold")


def test_a_page_that_is_asked_by_a_command_raises_the_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_alarms, "INTERVAL", 0.05)
    monkeypatch.setattr(server_alarms, "_STEP", 0.05)

    async def test() -> None:
        async with page_with_socket(tmp_path) as (page, client):
            await client.create(webhooks())
            assert (await page.get("about"))["denied"] == []

            async def alarms() -> list[dict[str, Any]]:
                with pytest.raises(InternalError):
                    await client.create(config_map("a"))
                return [each for each in (await page.get("alarms"))["alarms"] if each["type"] == "webhook"]

            (alarm,) = await until(alarms)
            assert alarm["message"].startswith("webhook check.example.dev cannot be called; writes to ")

    asyncio.run(test())


def test_a_page_of_an_operator_without_permission_lists_what_it_may_not_see(tmp_path: Path) -> None:
    async def test() -> None:
        scope = Scope(kinds=lambda: [GroupVersionKind("", "v1", "ConfigMap")])
        async with page_with_socket(tmp_path, mode="operator", scope=scope, user=JANE) as (page, _):

            async def denied() -> list[str] | None:
                found = [each["what"] for each in (await page.get("about"))["denied"]]
                return found if len(found) == 2 else None

            assert await until(denied) == ["ConfigMap (v1)", CANNOT]

    asyncio.run(test())
