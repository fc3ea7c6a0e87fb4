"""Conditions of a HorizontalPodAutoscaler. lastTransitionTime changes with the status, not with the reason."""

from __future__ import annotations

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscalerCondition as Condition


class Conditions:
    def __init__(self, found: list[Condition], now: Time) -> None:
        self.all = [msgspec.structs.replace(each) for each in found]
        self._now = now

    def able(self, reason: str, message: str, *, status: bool = True) -> None:
        """Set AbleToScale."""
        self._set("AbleToScale", reason, message, status=status)

    def active(self, reason: str, message: str, *, status: bool) -> None:
        """Set ScalingActive."""
        self._set("ScalingActive", reason, message, status=status)

    def limited(self, reason: str, message: str, *, status: bool) -> None:
        """Set ScalingLimited."""
        self._set("ScalingLimited", reason, message, status=status)

    def remove(self, kind: str) -> None:
        self.all = [each for each in self.all if each.type != kind]

    def _set(self, kind: str, reason: str, message: str, *, status: bool) -> None:
        said = "True" if status else "False"
        for each in self.all:
            if each.type == kind:
                if each.status != said:
                    each.last_transition_time = self._now
                each.status, each.reason, each.message = said, reason, message
                return
        self.all.append(
            Condition(type=kind, status=said, reason=reason, message=message, last_transition_time=self._now)
        )
