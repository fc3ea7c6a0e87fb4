"""Dashboard and alerts name metrics that exist, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ostinato.cache import metrics as cache
from ostinato.client.transport import metrics as client
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.manager.election.election import MASTER_STATUS, SLOW_PATHS
from ostinato.manager.metrics import UNREADABLE
from ostinato.metrics import process_families
from ostinato.packaging.monitoring import alert_groups, dashboard
from ostinato.packaging.monitoring.alerts import ALERTS
from ostinato.webhook.metrics import WebhookStatistics
from ostinato.world import World

_NAMES = re.compile(r"([a-zA-Z_:][\w:]*)\{")
_SYNTHETIC = {"up"}  # of Prometheus itself


def existing() -> set[str]:
    """The names of the families, with the samples of histograms."""
    webhooks = WebhookStatistics()
    webhooks.expect("/validate")
    world = World.real(workers=1)
    families = [
        *ControllerStatistics("widgets", world.clock, 1).families(),
        *webhooks.families(),
        *process_families(),
    ]
    world.executor.close()
    sampled = {sample.name for family in families for sample in family.samples} | {each.name for each in families}
    constants = [value for module in (client, cache) for value in vars(module).values() if isinstance(value, str)]
    named = {name for name in constants if name.startswith(("rest_client_", "informer_", "ostinato_"))}
    buckets = {f"{name}_bucket" for name in named if name.endswith(("_seconds", "_bytes"))}
    return sampled | named | buckets | {MASTER_STATUS, SLOW_PATHS, UNREADABLE}


def expressions() -> Iterator[str]:
    for panel in dashboard("widgets", webhooks=True)["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard("widgets", webhooks=True)["templating"]["list"][1:]:
        yield (
            variable["definition"].replace(",", "{,", 1)
            if "{" not in variable["definition"]
            else variable["definition"]
        )
    for group in alert_groups('job="x"', name="widgets", webhooks=True):
        yield from (rule["expr"] for rule in group["rules"])


def test_every_metric_of_dashboard_and_alerts_exists() -> None:
    used = {name for expression in expressions() for name in _NAMES.findall(expression)}
    assert len(used) > 25
    assert sorted(used - existing() - _SYNTHETIC) == []


def test_every_selector_is_filled_in() -> None:
    for expression in expressions():
        assert "%s" not in expression
        assert expression.count("{") == expression.count("}") or "label_values" in expression
        assert expression.count("(") == expression.count(")")


def test_alerts_have_unique_names_and_a_text_each() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    assert all(alert.summary and alert.description for alert in ALERTS)


def test_a_program_without_webhooks_has_no_panels_for_them() -> None:
    assert "webhook" not in json.dumps(dashboard("widgets", webhooks=False)["panels"])
    without = alert_groups("", name="widgets", webhooks=False)[0]["rules"]
    assert not [rule["alert"] for rule in without if "Webhook" in rule["alert"] or "Certificate" in rule["alert"]]


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard("widgets", webhooks=True)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
