"""Finalizers: who would remove one, so that a deletion can proceed."""

from __future__ import annotations

from typing import Any, Final

from ostinato.page.live.graph import LiveGraph

Json = dict[str, Any]

# Finalizers of Kubernetes, and the controllers that remove them.
_KNOWN: Final = {
    "foregroundDeletion": "garbage-collector-controller",
    "orphan": "garbage-collector-controller",
    "kubernetes": "namespace-controller",
    "kubernetes.io/pvc-protection": "pvc-protection-controller",
    "kubernetes.io/pv-protection": "pv-protection-controller",
    "kubernetes.io/vac-protection": "volumeattributesclass-protection-controller",
    "batch.kubernetes.io/job-tracking": "job-controller",
}
_WAITS: Final = {
    "foregroundDeletion": "until the objects that it owns are deleted",
    "kubernetes": "until all objects in the namespace are deleted",
    "kubernetes.io/pvc-protection": "until no Pod uses the claim",
    "kubernetes.io/pv-protection": "until no claim is bound to the volume",
}


def holder_of(finalizer: str, instance: Json, graph: LiveGraph) -> str:
    """Return who removes a finalizer, and whether it runs, as text."""
    known = _KNOWN.get(finalizer)
    if known is not None:
        waits = _WAITS.get(finalizer, "when its work is done")
        return f"{known} removes it {waits}"
    manager = _manager(finalizer, instance)
    if not manager:
        return "unknown who removes it; remove it by hand only if its controller will not run again"
    if graph.has_controller(manager):
        return f"controller {manager}, which runs, removes it when its cleanup succeeds"
    return f"{manager} added it, and no controller of that name reports to this page"


def _manager(finalizer: str, instance: Json) -> str:
    """Return the field manager that owns a finalizer; "" if none does."""
    for entry in (instance.get("metadata") or {}).get("managedFields") or ():
        fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:finalizers") or {}
        if f'v:"{finalizer}"' in fields:
            return str(entry.get("manager") or "")
    return ""
