"""Strategy of Nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.addresses import cidr_warnings, parse_cidr
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.defaults import round_up
from ostinato.server.resources.core.pods.spec.scheduling import TAINT_EFFECTS
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import checked, legacy_cidr, one_of
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.quantities import validate_amount

_SPEC = Path("spec")
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_FORM = (
    "start with an UpperCamelCase segment, with subsequent segments separated by '/' "
    "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_LONGEST_FEATURE = 253
_TAINTS = Path("metadata", "taints")  # the path in kube-apiserver's messages


class Node(Strategy):
    selectable = ("spec.unschedulable",)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        network, networks = spec.get("podCIDR"), spec.get("podCIDRs")
        if network and (not networks or networks[0] != network):  # podCIDR and podCIDRs hold the same value
            spec["podCIDRs"] = [network]
        elif networks:
            spec["podCIDR"] = networks[0]
        status = obj.setdefault("status", {})
        for field in ("capacity", "allocatable"):
            if field in status:
                round_up(status[field])
        if "capacity" in status and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: Json) -> None:
        obj["spec"].pop("configSource", None)
        obj.get("status", {}).pop("config", None)

    def prepare_update(self, new: Json, old: Json) -> None:
        if "configSource" not in old.get("spec", {}):
            new["spec"].pop("configSource", None)

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        if "config" not in old.get("status", {}):
            new.get("status", {}).pop("config", None)

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        errors = _validate_taints(spec.get("taints", ()))
        errors += _validate_amounts(obj) + _validate_features(obj)
        networks = spec.get("podCIDRs", [])
        for i, network in enumerate(networks):
            errors += legacy_cidr(network, _SPEC.child("podCIDRs").index(i))
        unreadable = next((i for i, network in enumerate(networks) if parse_cidr(network) is None), None)
        if len(networks) > 1 and unreadable is not None:
            why = f"invalid CIDR[{unreadable}]: <nil> (invalid CIDR address: {networks[unreadable]})"
            detail = f"invalid PodCIDRs. failed to check with dual stack with error:{why}"
            errors.append(FieldError.internal(_SPEC.child("podCIDRs"), detail))
        if len(networks) > 1 and ({":" in network for network in networks} != {True, False} or len(networks) > 2):
            detail = "may specify no more than one CIDR for each IP family"
            errors.append(FieldError.invalid(_SPEC.child("podCIDRs"), networks, detail))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + self.validate_status_update(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = _validate_amounts(new) + _validate_features(new)
        seen: list[Json] = []
        for i, address in enumerate(new.get("status", {}).get("addresses", ())):
            if address in seen:
                path = Path("status", "addresses").index(i)
                errors.append(FieldError.duplicate(path, as_internal("core.v1.NodeAddress", address)))
            seen.append(address)
        spec, before = new["spec"], old["spec"]
        networks = before.get("podCIDRs", [])
        detail = 'node updates may not change {} except from "" to valid'
        after = spec.get("podCIDRs", [])
        if networks and networks != after:
            changed = sum(map(str.__ne__, networks, after)) if len(networks) == len(after) else 1
            errors += [FieldError.forbidden(_SPEC.child("podCIDRs"), detail.format("podCIDR"))] * changed
        if before.get("providerID") and before["providerID"] != spec.get("providerID"):
            errors.append(FieldError.forbidden(_SPEC.child("providerID"), detail.format("providerID")))
        errors += _validate_taints(spec.get("taints", ()))
        if spec.get("externalID", "") != before.get("externalID", ""):
            errors.append(FieldError.forbidden(_SPEC.child("externalID"), "may not be updated"))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        spec = new["spec"]
        found = []
        if "configSource" in spec:
            found.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for i, network in enumerate(spec.get("podCIDRs", ())):
            found += [f"{_SPEC.child('podCIDRs').index(i)}: {text}" for text in cidr_warnings(network)]
        return found

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"spec.unschedulable": "true" if obj.get("spec", {}).get("unschedulable") else "false"}


def _validate_taints(taints: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        path = _TAINTS.index(i)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += checked(names.is_label_key, key, path.child("key"))
        wrong = names.is_label_value(value)
        if wrong:
            errors.append(FieldError.invalid(path.child("value"), value, ";".join(wrong)))
        errors += one_of(effect, TAINT_EFFECTS, path.child("effect"))
        if (key, effect) in seen:
            error = FieldError.duplicate(path, as_internal("core.v1.Taint", taint))
            errors.append(
                FieldError(error.type, error.field, error.value, "taints must be unique by key and effect pair")
            )
        seen.add((key, effect))
    return errors


def _validate_features(node: Json) -> list[FieldError]:
    """Validate `status.declaredFeatures`: well-formed names, sorted."""
    errors: list[FieldError] = []
    features, path = node.get("status", {}).get("declaredFeatures", []), Path("status", "declaredFeatures")
    for i, feature in enumerate(features):
        wrong = f"invalid feature name {quote(feature)}: must "
        if names.byte_length(feature) > _LONGEST_FEATURE:
            detail = f"{wrong}be no more than {_LONGEST_FEATURE} characters"
            errors.append(FieldError.invalid(path.index(i), feature, detail))
        elif not _FEATURE.fullmatch(feature):
            errors.append(FieldError.invalid(path.index(i), feature, wrong + _FEATURE_FORM))
        following = features[i + 1] if i + 1 < len(features) else None
        if feature == following:
            errors.append(FieldError.duplicate(path.index(i + 1), following))
        elif following is not None and feature > following:
            errors.append(FieldError.invalid(path.index(i + 1), following, "list must be sorted alphabetically"))
    return errors


def _validate_amounts(node: Json) -> list[FieldError]:
    status = node.get("status", {})
    return [
        error
        for field in ("capacity", "allocatable")
        for name, amount in status.get(field, {}).items()
        for error in validate_amount(name, amount, Path("status", field, name))
    ]
