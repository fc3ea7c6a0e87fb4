"""CEL types of `request` and `namespaceObject` in policies."""

from __future__ import annotations

from typing import Final

from ostinato.cel.check.declarations import Declaration, message, simple
from ostinato.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, list_of, map_of

_TEXT: Final = simple(STRING)
_TEXTS: Final = simple(list_of(STRING))
_LABELS: Final = simple(map_of(STRING, STRING))
_MOMENT: Final = simple(TIMESTAMP)  # declared as a timestamp, but the value is a string, as in kube-apiserver


def _texts(*names: str) -> list[tuple[str, Declaration]]:
    return [(name, _TEXT) for name in names]


def _list_of(items: Declaration) -> Declaration:
    found = simple(list_of(items.type))
    found.items = items
    return found


_KIND: Final = message("kubernetes.GroupVersionKind", _texts("group", "version", "kind"))
_RESOURCE: Final = message("kubernetes.GroupVersionResource", _texts("group", "version", "resource"))
_USER: Final = message(
    "kubernetes.UserInfo",
    [*_texts("username", "uid"), ("groups", _TEXTS), ("extra", simple(map_of(STRING, list_of(STRING))))],
)
REQUEST: Final = message(
    "kubernetes.AdmissionRequest",
    [
        ("kind", _KIND),
        ("resource", _RESOURCE),
        ("requestKind", _KIND),
        ("requestResource", _RESOURCE),
        *_texts("subResource", "requestSubResource", "name", "namespace", "operation"),
        ("userInfo", _USER),
        ("dryRun", simple(BOOL)),
        ("options", simple(DYN)),
    ],
)
_CONDITION: Final = message(
    "kubernetes.NamespaceCondition",
    [*_texts("status", "type", "message", "reason"), ("lastTransitionTime", _MOMENT)],
)
NAMESPACE: Final = message(
    "kubernetes.Namespace",
    [
        (
            "metadata",
            message(
                "kubernetes.NamespaceMetadata",
                [
                    *_texts("name", "generateName", "namespace", "UID", "resourceVersion"),
                    ("labels", _LABELS),
                    ("annotations", _LABELS),
                    ("creationTimestamp", _MOMENT),
                    ("deletionTimestamp", _MOMENT),
                    ("deletionGracePeriodSeconds", simple(INT)),
                    ("generation", simple(INT)),
                    ("finalizers", _TEXTS),
                ],
            ),
        ),
        ("spec", message("kubernetes.NamespaceSpec", [("finalizers", _TEXTS)])),
        ("status", message("kubernetes.NamespaceStatus", [("conditions", _list_of(_CONDITION)), *_texts("phase")])),
    ],
)
