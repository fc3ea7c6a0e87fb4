"""The optional webhook refuses changes of instances when they are stored."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.frontends.plans.conftest import INSTANCE, Reach, make_package

from ostinato.api.errors import APIError
from ostinato.client import MergePatch
from ostinato.frontends.plans import PlanController
from ostinato.frontends.plans.admission import InstanceWebhook
from ostinato.frontends.plans.installing import Plans
from ostinato.webhook import UrlEndpoint

OPERATOR = """
name: web
operatorVersion: 1.0.0
tasks: [{name: nothing, kind: Dummy, spec: {done: true}}]
plans:
  deploy: {phases: [{name: main, steps: [{name: nothing, tasks: [nothing]}]}]}
  cleanup: {phases: [{name: main, steps: [{name: nothing, tasks: [nothing]}]}]}
"""
PARAMS = "parameters: [{name: FIXED, default: one, immutable: true}, {name: SIZE, type: integer}]"


async def test_changes_are_refused_when_they_are_stored(cluster: Any, manager: Any, client: Any, reach: Reach) -> None:
    webhook = InstanceWebhook(UrlEndpoint("https://127.0.0.1:9443"))
    await manager.start(PlanController(), webhook)
    plans = Plans(client, "default", lambda _: None)
    package = make_package(OPERATOR, PARAMS)
    await plans.install(package, skip_instance=True)
    for parameters, message in (({}, '"SIZE" is required'), ({"SIZE": "x"}, 'type is "integer"')):
        with pytest.raises(APIError, match=message):
            await client.create(package.instance("web", parameters))
    await client.create(package.instance("web", {"SIZE": "1"}))
    await reach("web", "deploy", "COMPLETE")
    for change, message in (
        ({"parameters": {"FIXED": "two"}}, "'FIXED' is immutable but was changed from 'one' to 'two'"),
        ({"planExecution": {"planName": "none"}}, "plan none does not exist"),
        ({"planExecution": {"planName": "cleanup"}}, "only the controller schedules"),
    ):
        with pytest.raises(APIError, match=message):
            await client.patch(INSTANCE, "web", MergePatch({"spec": change}))
    await client.patch(INSTANCE, "web", MergePatch({"spec": {"parameters": {"SIZE": "2"}}}))
    await plans.uninstall("web", 30)
