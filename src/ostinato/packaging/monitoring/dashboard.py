"""The Grafana dashboard, as JSON. Panels are data; `dashboard` lays them out in two columns."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_SELECTOR: Final = 'namespace=~"$namespace",job=~"$job"'
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHT: Final = 8
_WIDTH: Final = 12
_SCHEMA_VERSION: Final = 39  # Grafana 10 and later


class Query(NamedTuple):
    """`expression`: PromQL, with `%s` for the selector. `legend`: Grafana's template."""

    expression: str
    legend: str


class Panel(NamedTuple):
    title: str
    unit: str
    queries: tuple[Query, ...]
    webhooks: bool = False  # for programs with webhooks only


class Row(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


def _quantiles(metric: str, label: str) -> tuple[Query, ...]:
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by ({label}, le) (rate({metric}_bucket{{%s}}[$__rate_interval])))",
            f"{{{{{label}}}}} p{share * 100:g}",
        )
        for share in (0.5, 0.99)
    )


def _rate(metric: str, labels: str, matchers: str = "") -> str:
    return f"sum by ({labels}) (rate({metric}{{{matchers}%s}}[$__rate_interval]))"


ROWS: Final = (
    Row(
        "Reconciles",
        (
            Panel(
                "Reconciles by result",
                "ops",
                (
                    Query(
                        _rate("controller_runtime_reconcile_total", "controller, result"), "{{controller}} {{result}}"
                    ),
                ),
            ),
            Panel(
                "Errors",
                "ops",
                (
                    Query(_rate("controller_runtime_reconcile_errors_total", "controller"), "{{controller}} errors"),
                    Query(
                        _rate("controller_runtime_terminal_reconcile_errors_total", "controller"),
                        "{{controller}} terminal",
                    ),
                    Query(_rate("controller_runtime_reconcile_panics_total", "controller"), "{{controller}} panics"),
                    Query(
                        _rate("controller_runtime_reconcile_timeouts_total", "controller"), "{{controller}} timeouts"
                    ),
                ),
            ),
            Panel("Duration", "s", _quantiles("controller_runtime_reconcile_time_seconds", "controller")),
            Panel(
                "Workers",
                "short",
                (
                    Query("sum by (controller) (controller_runtime_active_workers{%s})", "{{controller}} active"),
                    Query(
                        "sum by (controller) (controller_runtime_max_concurrent_reconciles{%s})",
                        "{{controller}} maximum",
                    ),
                ),
            ),
            Panel(
                "Conflicts, delays and hot loops",
                "ops",
                (
                    Query(_rate("ostinato_reconcile_conflicts_total", "controller"), "{{controller}} conflicts"),
                    Query(
                        _rate("ostinato_reconcile_delayed_total", "controller"), "{{controller}} waited for own writes"
                    ),
                    Query(_rate("ostinato_reconcile_hot_loops_total", "controller"), "{{controller}} hot loops"),
                ),
            ),
            Panel(
                "Reasons",
                "ops",
                (Query(_rate("ostinato_reconcile_reasons_total", "controller, reason"), "{{controller}} {{reason}}"),),
            ),
        ),
    ),
    Row(
        "Work queues",
        (
            Panel(
                "Depth",
                "short",
                (Query("sum by (name, priority) (workqueue_depth{%s})", "{{name}} priority {{priority}}"),),
            ),
            Panel(
                "Adds and retries",
                "ops",
                (
                    Query(_rate("workqueue_adds_total", "name"), "{{name}} adds"),
                    Query(_rate("workqueue_retries_total", "name"), "{{name}} retries"),
                ),
            ),
            Panel("Time in the queue", "s", _quantiles("workqueue_queue_duration_seconds", "name")),
            Panel("Time of work", "s", _quantiles("workqueue_work_duration_seconds", "name")),
            Panel(
                "Longest running reconcile",
                "s",
                (Query("max by (name) (workqueue_longest_running_processor_seconds{%s})", "{{name}}"),),
            ),
            Panel(
                "Unfinished work",
                "s",
                (Query("sum by (name) (workqueue_unfinished_work_seconds{%s})", "{{name}}"),),
            ),
        ),
    ),
    Row(
        "API requests and caches",
        (
            Panel(
                "Requests by code",
                "reqps",
                (Query(_rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}"),),
            ),
            Panel("Request latency", "s", _quantiles("rest_client_request_duration_seconds", "verb")),
            Panel(
                "Cached objects",
                "short",
                (Query("max by (group, resource) (ostinato_cache_objects{%s})", "{{resource}}.{{group}}"),),
            ),
            Panel(
                "Unreadable objects",
                "short",
                (Query("max by (group, kind) (ostinato_unreadable_objects_total{%s})", "{{kind}}.{{group}}"),),
            ),
        ),
    ),
    Row(
        "Webhooks",
        (
            Panel(
                "Reviews by code",
                "reqps",
                (Query(_rate("controller_runtime_webhook_requests_total", "webhook, code"), "{{webhook}} {{code}}"),),
                webhooks=True,
            ),
            Panel("Latency", "s", _quantiles("controller_runtime_webhook_latency_seconds", "webhook"), webhooks=True),
        ),
    ),
    Row(
        "Processes",
        (
            Panel("Leader", "short", (Query("leader_election_master_status{%s}", "{{pod}} {{name}}"),)),
            Panel("CPU", "short", (Query("rate(process_cpu_seconds_total{%s}[$__rate_interval])", "{{pod}}"),)),
            Panel("Resident memory", "bytes", (Query("process_resident_memory_bytes{%s}", "{{pod}}"),)),
            Panel("Open files", "short", (Query("process_open_fds{%s}", "{{pod}}"),)),
        ),
    ),
)


def dashboard(name: str, *, webhooks: bool) -> Json:
    """Return the dashboard of an operator. `webhooks`: with the panels about webhooks."""
    panels: list[Json] = []
    y = 0
    for row in ROWS:
        shown = [panel for panel in row.panels if webhooks or not panel.webhooks]
        if not shown:
            continue
        position = {"h": 1, "w": 2 * _WIDTH, "x": 0, "y": y}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": row.title, "gridPos": position, "collapsed": False}
        )
        y += 1
        for index, panel in enumerate(shown):
            position = {"h": _HEIGHT, "w": _WIDTH, "x": index % 2 * _WIDTH, "y": y + index // 2 * _HEIGHT}
            panels.append(_panel(len(panels) + 1, panel, position))
        y += (len(shown) + 1) // 2 * _HEIGHT
    return {
        "uid": hashlib.sha256(f"ostinato/{name}".encode()).hexdigest()[:40],
        "title": name,
        "description": f"Controllers, work queues, requests and processes of the operator {name}",
        "tags": ["ostinato", "operator"],
        "schemaVersion": _SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "templating": {"list": _variables(name)},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def _panel(number: int, panel: Panel, position: Json) -> Json:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _DATASOURCE,
            "expr": query.expression % _SELECTOR,
            "legendFormat": query.legend,
            "range": True,
        }
        for index, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _DATASOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }


def _variables(name: str) -> list[Json]:
    metric = "controller_runtime_reconcile_total"
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        _variable("namespace", f"label_values({metric}, namespace)"),
        _variable("job", f'label_values({metric}{{namespace=~"$namespace"}}, job)', f".*{name}.*"),
    ]


def _variable(name: str, query: str, pattern: str = "") -> Json:
    return {
        "name": name,
        "type": "query",
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "regex": f"/{pattern}/" if pattern else "",
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 1,
    }
