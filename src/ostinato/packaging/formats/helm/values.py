"""`values.yaml` with its comments, and `values.schema.json`: from one table."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.packaging.overrides import Features, plain
from ostinato.packaging.package import RESERVED_LABELS, Package

Json = dict[str, Any]

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_OBJECT: Final = {"type": "object"}
_OBJECTS: Final = {"type": "array", "items": _OBJECT}
_QUANTITIES: Final = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_LABELS: Final = {**_TEXTS, "propertyNames": {"not": {"enum": list(RESERVED_LABELS)}}}


class Value(NamedTuple):
    """A field of `values.yaml`."""

    name: str
    comment: str
    value: Any
    schema: Json


def chart_values(package: Package) -> list[Value]:
    overrides = package.overrides
    image = {
        "repository": package.image.repository,
        "tag": package.image.tag,
        "digest": package.image.digest,
        "pullPolicy": overrides.image_pull_policy,
    }
    policies = {"enum": ["Always", "IfNotPresent", "Never"]}
    pulled = _fields(repository={**_TEXT, "minLength": 1}, tag=_TEXT, digest=_TEXT, pullPolicy=policies)
    features = {name: on for name, on in msgspec.to_builtins(overrides.features).items() if name != "namespace"}
    account = _fields(create=_FLAG, name=_TEXT, annotations=_TEXTS)
    env = {"type": "object", "additionalProperties": {"type": ["string", "object"]}}
    pull_secrets = {"type": "array", "items": {**_fields(name=_TEXT), "required": ["name"]}}
    resources = _fields(requests=_QUANTITIES, limits=_QUANTITIES, claims=_OBJECTS)
    args = {"type": "array", "items": _TEXT}
    return [
        Value("image", "Image of the operator; the digest, if set, decides.", image, pulled),
        Value("imagePullSecrets", "As in a Pod.", plain(overrides.image_pull_secrets), pull_secrets),
        Value("replicas", "Several replicas elect a leader.", overrides.replicas, {"type": "integer", "minimum": 0}),
        Value("leaderElection", "Elect a leader also with one replica.", overrides.leader_election, _FLAG),
        Value("args", "Further options of `ostinato run`.", list(overrides.args), args),
        Value("env", "Variables by name: a text, or a source such as secretKeyRef.", plain(overrides.env), env),
        Value("envFrom", "As in a container.", list(overrides.env_from), _OBJECTS),
        Value("resources", "As in a container.", plain(overrides.resources), resources),
        Value("labels", "Labels of all objects.", plain(overrides.labels), _LABELS),
        Value("annotations", "Annotations of all objects.", plain(overrides.annotations), _TEXTS),
        Value("podLabels", "Labels of the Pods.", plain(overrides.pod_labels), _LABELS),
        Value("podAnnotations", "Annotations of the Pods.", plain(overrides.pod_annotations), _TEXTS),
        Value(
            "podSecurityContext",
            "Further fields of the Pod's securityContext, such as runAsUser.",
            overrides.pod_security_context,
            _OBJECT,
        ),
        Value("nodeSelector", "As in a Pod.", plain(overrides.node_selector), _TEXTS),
        Value("tolerations", "As in a Pod.", list(overrides.tolerations), _OBJECTS),
        Value("affinity", "As in a Pod.", overrides.affinity, _OBJECT),
        Value("topologySpreadConstraints", "As in a Pod.", list(overrides.topology_spread_constraints), _OBJECTS),
        Value("priorityClassName", "As in a Pod.", overrides.priority_class_name, _TEXT),
        Value("volumes", "Further volumes, as in a Pod.", list(overrides.volumes), _OBJECTS),
        Value("volumeMounts", "Their mounts, as in a container.", list(overrides.volume_mounts), _OBJECTS),
        Value(
            "serviceAccount",
            "The name defaults to that of the release.",
            plain(overrides.service_account),
            account,
        ),
        Value("features", "Switches; monitoring needs prometheus-operator or Grafana.", features, _switches()),
        Value("fullnameOverride", "Name of all objects (default: from the release).", "", _TEXT),
    ]


def values_yaml(values: list[Value]) -> str:
    return "\n".join(f"# {each.comment}\n{encode_yaml({each.name: each.value}).decode()}" for each in values)


def values_schema(values: list[Value]) -> Json:
    fields = {each.name: {"description": each.comment, **each.schema} for each in values}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values",
        **_fields(**fields, **{"global": {**_OBJECT, "description": "Values of a parent chart."}}),
        "required": ["image"],
    }


def _fields(**fields: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": fields}


def _switches() -> Json:
    names = [field.encode_name for field in msgspec.structs.fields(Features)]
    return _fields(**{name: _FLAG for name in names if name != "namespace"})
