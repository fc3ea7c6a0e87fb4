"""Counters in the text of /metrics: those of this server, and of kube-apiserver with many others."""

from __future__ import annotations

import asyncio

from tests.stage.server import started_server

from ostinato.client.client import Client
from ostinato.page.watching.server_metrics import FAIL_OPEN, REJECTIONS, THROTTLED, Series, parse, read_counters
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World

TEXT = b"""
# HELP apiserver_admission_webhook_fail_open_count [ALPHA] Admission webhook fail open count.
# TYPE apiserver_admission_webhook_fail_open_count counter
apiserver_admission_webhook_fail_open_count{name="open.example.com",type="admit"} 1
apiserver_admission_webhook_fail_open_count_created{name="open.example.com",type="admit"} 9
apiserver_admission_webhook_rejection_count{error_type="no_error",name="a, \\"b\\"",type="validating"} 1.2e+06
apiserver_flowcontrol_rejected_requests_total{flow_schema="f",priority_level="l",reason="queue-full"} NaN
apiserver_flowcontrol_rejected_requests_total{flow_schema="g",priority_level="l",reason="queue-full"} none
apiserver_flowcontrol_rejected_requests_total{flow_schema="h",priority_level="l",reason="queue-full"} 3
apiserver_request_total{code="200"} 7
process_start_time_seconds 1.79497765829e+09"""


def test_only_the_wanted_counters_are_parsed() -> None:
    process, values = parse(TEXT)
    assert process == "1794977658.29"
    assert values == {
        Series(FAIL_OPEN, (("name", "open.example.com"), ("type", "admit"))): 1,
        Series(REJECTIONS, (("error_type", "no_error"), ("name", 'a, \\"b\\"'), ("type", "validating"))): 1.2e6,
        Series(THROTTLED, (("flow_schema", "h"), ("priority_level", "l"), ("reason", "queue-full"))): 3,
    }


def test_a_server_without_a_start_time_has_no_process() -> None:
    assert parse(b"\nsome 1\n") == ("", {})


def test_a_server_answers_with_its_start_and_nothing_else() -> None:
    async def main() -> None:
        async with started_server() as server:
            async with Client(InProcessTransport(server), world=server.world) as client:
                first, second = await read_counters(client), await read_counters(client)
            assert first == second
            assert float(first.process) > 1.6e9
            assert first.values == {}

    asyncio.run(main())


def test_a_restarted_server_has_another_process() -> None:
    async def main(world: World) -> str:
        async with started_server(world) as server, Client(InProcessTransport(server), world=world) as client:
            return (await read_counters(client)).process

    world = World.real(workers=1)
    assert asyncio.run(main(world)) != asyncio.run(main(world))
    world.executor.close()
