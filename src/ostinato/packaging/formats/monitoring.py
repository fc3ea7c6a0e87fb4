"""Monitoring without Kubernetes objects: a dashboard to import, and a rule file of Prometheus."""

from __future__ import annotations

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.headers import HEADER
from ostinato.packaging.monitoring.alerts import alert_groups
from ostinato.packaging.objects.monitoring import dashboard_text
from ostinato.packaging.package import Package


def monitoring_files(package: Package) -> dict[str, str]:
    webhooks = bool(package.operator.webhooks)
    selector = f'namespace="{package.namespace}",job="{package.name}-metrics"'
    groups = {"groups": alert_groups(selector, name=package.name, webhooks=webhooks)}
    return {
        "alerts.yaml": HEADER + encode_yaml(groups).decode(),
        "dashboard.json": dashboard_text(package.name, webhooks=webhooks),
    }
