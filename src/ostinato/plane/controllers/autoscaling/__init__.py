"""The autoscaler: as many Pods as it takes to bring what they use to what they should.

- `reconciler`: every fifteen seconds, from metrics to the scale of a workload.
- `samples`: the metrics APIs.
- `sources`: what each metric proposes.
- `arithmetic`: from use to a number.
- `limits`: how fast that number may change.
- `conditions`: what is said of it.
"""

from __future__ import annotations

from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.autoscaling.reconciler import AutoscalerReconciler

__all__ = ["AutoscalerReconciler", "add_to"]


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - there is nothing to choose
    (
        manager.build("horizontal-pod-autoscaler")
        .watch_for(HorizontalPodAutoscaler)
        .with_options(max_concurrent=5)
        .complete(AutoscalerReconciler())
    )
