"""Namespaces: they end in two phases, the second when all that is in them has gone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from ostinato.api import names
from ostinato.api.time import Time
from ostinato.server.resources.strategy import Json, NameRule, Strategy


class Namespace(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_label)
    selectable = ("status.phase",)

    def default(self, obj: Json) -> None:
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")

    def prepare_update(self, new: Json, old: Json) -> None:
        new["spec"] = {**new.get("spec", {}), "finalizers": old.get("spec", {}).get("finalizers", [])}
        if not new["spec"]["finalizers"]:
            del new["spec"]["finalizers"]

    def is_finalized(self, obj: Json) -> bool:
        return not obj.get("spec", {}).get("finalizers")

    def begins_deletion(self, obj: Json, now: datetime) -> bool:
        if self.is_finalized(obj) and not obj["metadata"].get("finalizers"):
            return False
        obj["metadata"].setdefault("deletionTimestamp", str(Time.of(now)))
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        return True

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"status.phase": obj.get("status", {}).get("phase", "")}
