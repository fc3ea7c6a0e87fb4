"""The roles that are derived for a controller permit what it reports about failures."""

from __future__ import annotations

from tests.stage.kinds import Widget

from ostinato.controllers import Context, controller
from ostinato.crd import access_of, event_access


@controller(Widget)
async def widgets(each: Widget, ctx: Context) -> None: ...


def test_the_derived_role_permits_events_and_the_ready_condition() -> None:
    permitted = {
        (group, resource, verb)
        for rule in (*access_of(widgets), event_access())
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
    }
    assert permitted >= {
        ("example.dev", "widgets", "get"),
        ("example.dev", "widgets/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
    }
