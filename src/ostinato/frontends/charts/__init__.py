"""Helm charts as operators, as in operator-sdk's Helm operator.

    nginx = Chart("charts/nginx").for_kind("Nginx", group="example.com")

The spec of a custom resource is the values of its release.
"""

from __future__ import annotations

from ostinato.frontends.charts.controller import Chart, ChartController
from ostinato.frontends.charts.options import ChartOptions

__all__ = ["Chart", "ChartController", "ChartOptions"]
