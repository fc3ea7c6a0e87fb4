"""Strategies of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.flowcontrol.validation import (
    validate_condition_types,
    validate_flow_schema,
    validate_priority_level,
)
from ostinato.server.resources.strategy import Json, Strategy

_GROUP = "flowcontrol.apiserver.k8s.io"
_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


class _FlowControl(Strategy):
    """The rules that both kinds share: a status update changes the status only."""

    generation = True
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        own = {"managedFields", "resourceVersion"} & new["metadata"].keys()
        new["metadata"] = {**old["metadata"], **{field: new["metadata"][field] for field in own}}

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_condition_types(new)


class FlowSchema(_FlowControl):
    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_flow_schema(obj.get("spec") or {}, obj["metadata"].get("name", ""))


class PriorityLevelConfiguration(_FlowControl):
    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        for field, shares in (("exempt", 0), ("limited", 30)):
            if spec.get(field) is not None:
                if spec[field].get("nominalConcurrencyShares") is None:
                    spec[field]["nominalConcurrencyShares"] = shares
                spec[field].setdefault("lendablePercent", 0)
        queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for field, value in _QUEUING.items():
                queuing[field] = queuing.get(field) or value

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_priority_level(obj.get("spec") or {}, obj["metadata"].get("name", ""))


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "flowschemas"): FlowSchema(),
    (_GROUP, "prioritylevelconfigurations"): PriorityLevelConfiguration(),
}
