"""Rejects privileged containers: kube-apiserver's `--allow-privileged=false`.

kube-apiserver checks this with the other fields of a Pod or Pod template; here it is checked after them, so that an
object that is invalid in both ways is rejected for the other fields first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Invalid
from ostinato.api.gvk import GroupResource
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.pod_security.plugin import TEMPLATES
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_LISTS = ("initContainers", "containers", "ephemeralContainers")


class PrivilegedContainers(Plugin):
    covers = resources("pods") | {GroupResource(*each) for each in TEMPLATES}

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if obj is None or operation not in ("CREATE", "UPDATE"):
            return
        spec, path = obj, None
        for field in _path(context.resource.gvr.resource):
            spec = spec.get(field) or {}
            path = Path(field) if path is None else path.child(field)
        assert path is not None
        errors = [
            FieldError.forbidden(
                path.child(field).index(i).child("securityContext").child("privileged"), "disallowed by cluster policy"
            )
            for field in _LISTS
            for i, container in enumerate(spec.get(field) or ())
            if (container.get("securityContext") or {}).get("privileged")
        ]
        if errors:
            metadata = obj.get("metadata") or {}
            raise Invalid.of(context.resource.gvk.group_kind, metadata.get("name", ""), errors)


def _path(resource: str) -> tuple[str, ...]:
    """Fields that lead to the Pod spec."""
    match resource:
        case "pods":
            return ("spec",)
        case "podtemplates":
            return ("template", "spec")
        case "cronjobs":
            return ("spec", "jobTemplate", "spec", "template", "spec")
    return ("spec", "template", "spec")
