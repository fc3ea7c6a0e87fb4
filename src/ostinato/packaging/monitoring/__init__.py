"""A Grafana dashboard and Prometheus alert rules, from the metrics that managers, controllers and clients export."""

from ostinato.packaging.monitoring.alerts import ALERTS, alert_groups
from ostinato.packaging.monitoring.dashboard import dashboard

__all__ = ["ALERTS", "alert_groups", "dashboard"]
