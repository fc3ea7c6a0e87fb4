"""HorizontalPodAutoscaler controller.

- `reconciler`: every 15 seconds, from metrics to the scale of a workload.
- `metrics_client`: clients of the metrics APIs.
- `metric_sources`: the replica count that each metric proposes.
- `replica_calculator`: from usage to a replica count.
- `behavior`: stabilization windows and scaling policies.
- `conditions`: conditions of the status.
"""

from __future__ import annotations

from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.autoscaling.reconciler import AutoscalerReconciler

__all__ = ["AutoscalerReconciler", "add_to"]


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    (
        manager.build("horizontal-pod-autoscaler")
        .watch_for(HorizontalPodAutoscaler)
        .with_options(max_concurrent=5)
        .complete(AutoscalerReconciler())
    )
