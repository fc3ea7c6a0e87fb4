"""Objects for monitoring: ServiceMonitor, PrometheusRule and the dashboard's ConfigMap."""

from __future__ import annotations

import json
from typing import Any

from ostinato.packaging.manifest import Manifest, When, extended, formatted
from ostinato.packaging.monitoring.alerts import alert_groups
from ostinato.packaging.monitoring.dashboard import dashboard
from ostinato.packaging.objects.inputs import Inputs

Json = dict[str, Any]

_API = "monitoring.coreos.com/v1"


def monitoring_objects(inputs: Inputs) -> list[Manifest]:
    metadata = inputs.metadata(inputs.name)
    endpoint = {"port": "metrics", "path": "/metrics", "interval": "30s"}
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a file of the scraper
    secure = {"scheme": "https", "bearerTokenFile": token, "tlsConfig": {"insecureSkipVerify": True}}
    endpoints = [When("plainMetrics", endpoint), When("secureMetrics", {**endpoint, **secure})]
    spec = {"selector": {"matchLabels": inputs.selector}, "endpoints": endpoints}
    monitor = {"apiVersion": _API, "kind": "ServiceMonitor", "metadata": metadata, "spec": spec}
    groups = alert_groups(_selector(inputs), name=inputs.package.name, webhooks=bool(inputs.package.operator.webhooks))
    rule = {"apiVersion": _API, "kind": "PrometheusRule", "metadata": metadata, "spec": {"groups": groups}}
    return [
        Manifest("service-monitor.yaml", monitor, "serviceMonitor"),
        Manifest("alerts.yaml", rule, "alerts"),
        _dashboard(inputs),
    ]


def dashboard_text(name: str, *, webhooks: bool) -> str:
    return json.dumps(dashboard(name, webhooks=webhooks), indent=2, ensure_ascii=False) + "\n"


def _selector(inputs: Inputs) -> Any:
    return formatted('namespace="%s",job="%s"', inputs.namespace, inputs.named("metrics"))


def _dashboard(inputs: Inputs) -> Manifest:
    package = inputs.package
    text = dashboard_text(package.name, webhooks=bool(package.operator.webhooks))
    labels = extended(inputs.labels, {"grafana_dashboard": "1"})
    metadata = {**inputs.metadata(inputs.named("dashboard")), "labels": labels}
    data = {f"{package.name}.json": text}
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Manifest("dashboard.yaml", found, "dashboard")
