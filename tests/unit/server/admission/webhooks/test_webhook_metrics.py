"""Metrics of admission webhooks: the series of calls that succeed, deny and fail, as kube-apiserver 1.36 has them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stage.api import Api, Json, asking
from tests.unit.server.admission.webhooks.test_webhooks import MAPS, Hooks, config_map, configure, hook, patch

from ostinato.metrics import text
from ostinato.server.admission.webhooks.metrics import MAX_CODES, MAX_NAMES, WebhookCall, WebhookMetrics
from ostinato.server.core import Server
from ostinato.server.request import Request, Response
from ostinato.server.webhooks import CallError
from ostinato.server.webhooks.target import HttpStatusError

PREFIX = "apiserver_admission_webhook_"


def refuses(request: Json) -> Any:
    raise CallError('Post "https://127.0.0.1:9443/": dial tcp 127.0.0.1:9443: connect: connection refused')


def answers_500(request: Json) -> Any:
    raise HttpStatusError("an error on the server has prevented the request from succeeding", 500)


async def scraped(server: Server, query: str = "") -> dict[str, float]:
    """The series at /metrics."""

    async def read() -> bytes:
        return b""

    answer = await server.handle(Request("GET", "/metrics", query, {"authorization": "Bearer admin"}, read))
    assert isinstance(answer, Response)
    lines = [line.rpartition(" ") for line in answer.body.decode().splitlines() if not line.startswith("#")]
    return {series: float(value) for series, _, value in lines}


async def counters(api: Api) -> dict[str, float]:
    """The counters of webhooks, without the prefix of their names."""
    found = await scraped(api.server)
    return {
        series.removeprefix(PREFIX): value
        for series, value in found.items()
        if series.startswith(PREFIX) and "duration" not in series
    }


def requests(code: int, rejected: str, type_: str = "validating", name: str = "v") -> str:
    return (
        f'request_total{{code="{code}",name="{name}.example.com",operation="CREATE",rejected="{rejected}",'
        f'type="{type_}"}}'
    )


def rejections(error: str, code: int, type_: str = "validating", name: str = "v") -> str:
    return (
        f'rejection_count{{error_type="{error}",name="{name}.example.com",operation="CREATE",'
        f'rejection_code="{code}",type="{type_}"}}'
    )


KINDS = pytest.mark.parametrize(("kind", "type_"), [("validating", "validating"), ("mutating", "admit")])


@KINDS
def test_an_allowed_request_is_counted_with_code_200(kind: str, type_: str) -> None:
    @asking
    async def test(api: Api) -> None:
        Hooks(api, v=lambda request: None)
        assert await counters(api) == {}
        await configure(api, kind, hook("v"))
        assert (await api.post(MAPS, config_map())).code == 201
        assert await counters(api) == {requests(200, "false", type_): 1}

    test()


@KINDS
@pytest.mark.parametrize(
    ("status", "code"), [({}, 400), ({"status": {"code": 418}}, 418), ({"status": {"code": 999}}, 600)]
)
def test_a_denied_request_has_the_code_of_the_webhook_up_to_600(kind: str, type_: str, status: Json, code: int) -> None:
    @asking
    async def test(api: Api) -> None:
        Hooks(api, v=lambda request: {"allowed": False, **status})
        await configure(api, kind, hook("v"))
        await api.post(MAPS, config_map())
        assert await counters(api) == {requests(code, "true", type_): 1, rejections("no_error", code, type_): 1}

    test()


@KINDS
@pytest.mark.parametrize(
    ("answer", "code"), [(refuses, 503), (answers_500, 500), (lambda request: {"uid": "other"}, 503)]
)
def test_a_failed_call_is_a_rejection_with_failure_policy_fail(kind: str, type_: str, answer: Any, code: int) -> None:
    @asking
    async def test(api: Api) -> None:
        Hooks(api, v=answer)
        await configure(api, kind, hook("v"))
        assert (await api.post(MAPS, config_map())).code == 500
        assert await counters(api) == {
            requests(code, "true", type_): 1,
            rejections("calling_webhook_error", code, type_): 1,
        }

    test()


@KINDS
def test_a_failed_call_with_failure_policy_ignore_fails_open(kind: str, type_: str) -> None:
    @asking
    async def test(api: Api) -> None:
        Hooks(api, v=refuses)
        await configure(api, kind, hook("v", failurePolicy="Ignore"))
        assert (await api.post(MAPS, config_map())).code == 201
        assert await counters(api) == {
            requests(503, "false", type_): 1,
            f'fail_open_count{{name="v.example.com",type="{type_}"}}': 1,
        }

    test()


@asking
async def test_a_patch_that_cannot_be_applied_is_an_internal_error(api: Api) -> None:
    Hooks(api, v=lambda request: patch({"op": "remove", "path": "/nope/nope"}))
    await configure(api, "mutating", hook("v"))
    assert (await api.post(MAPS, config_map())).code == 500
    assert await counters(api) == {
        requests(0, "true", "admit"): 1,
        rejections("apiserver_internal_error", 0, "admit"): 1,
    }


@asking
async def test_an_unknown_type_of_patch_is_a_failed_call_with_the_code_of_the_status(api: Api) -> None:
    Hooks(api, v=lambda request: {**patch({"op": "remove", "path": "/data"}), "patchType": "Other"})
    await configure(api, "mutating", hook("v"))
    assert (await api.post(MAPS, config_map())).code == 500
    assert rejections("calling_webhook_error", 400, "admit") in await counters(api)


@asking
async def test_the_latency_of_each_call_is_observed(api: Api) -> None:
    async def slow(request: Json) -> None:
        await api.server.world.clock.sleep(2)

    Hooks(api, v=slow)
    await configure(api, "validating", hook("v"))
    await api.post(MAPS, config_map())
    found = await scraped(api.server)
    name = f"{PREFIX}admission_duration_seconds"
    labels = 'name="v.example.com",operation="CREATE",rejected="false",type="validating"'
    bounds = ("0.005", "0.025", "0.1", "0.5", "1", "2.5", "10", "25", "+Inf")
    buckets = [found[f'{name}_bucket{{{labels},le="{bound}"}}'] for bound in bounds]
    assert buckets == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert found[f"{name}_sum{{{labels}}}"] == pytest.approx(2)
    assert found[f"{name}_count{{{labels}}}"] == 1


@asking
async def test_a_scrape_can_name_the_metrics_that_it_wants(api: Api) -> None:
    Hooks(api, v=refuses)
    await configure(api, "validating", hook("v", failurePolicy="Ignore"))
    await api.post(MAPS, config_map())
    found = await scraped(api.server, f"name[]={PREFIX}fail_open_count&name%5B%5D=process_start_time_seconds")
    assert set(found) == {
        f'{PREFIX}fail_open_count{{name="v.example.com",type="validating"}}',
        "process_start_time_seconds",
    }
    total = await scraped(api.server, "name[]=apiserver_request_total")
    assert total
    assert all(series.startswith("apiserver_request_total{") for series in total)
    assert await scraped(api.server, "name[]=apiserver_flowcontrol_nominal_limit_seats")
    assert await scraped(api.server, "name[]=none") == {}


def test_names_and_codes_are_bounded() -> None:
    metrics = WebhookMetrics()
    for number in range(MAX_NAMES + 50):
        call = WebhookCall(f"w{number}.example.com", "admit", "CREATE")
        metrics.denied(call, 0.0, 400)
        metrics.failed(call, 0.0, 503, ignored=True)
    for code in range(400, 600):
        metrics.denied(WebhookCall("w0.example.com", "admit", "CREATE"), 0.0, code)
    lines = text(metrics.families()).splitlines()
    opened = [line for line in lines if line.startswith(f"{PREFIX}fail_open_count{{")]
    assert len(opened) == MAX_NAMES
    first = [line for line in lines if line.startswith(f"{PREFIX}rejection_count{{") and '"w0.' in line]
    assert len(first) <= MAX_CODES + 1
    assert sum(int(line.rpartition(" ")[2]) for line in first) == 201, "each is counted"
