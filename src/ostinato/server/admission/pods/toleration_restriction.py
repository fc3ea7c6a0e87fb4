"""PodTolerationRestriction: default and allowed tolerations per namespace.

- The annotation `scheduler.alpha.kubernetes.io/defaultTolerations` of the namespace is merged into a new Pod's
  tolerations; without it, the configuration's `default` is.
- Every toleration of the Pod must be included in one of `scheduler.alpha.kubernetes.io/tolerationsWhitelist`; without
  the annotation, in one of the configuration's `whitelist`. An empty list allows all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.errors import NotFound, Unknown
from ostinato.api.gvk import GroupResource
from ostinato.api.wire import DecodeError, decode_json
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.admission.pods.tolerations import includes, merged
from ostinato.server.resources.core.pods.spec.resources import quality_of_service
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.builtin import json_type

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_DEFAULT = "scheduler.alpha.kubernetes.io/defaultTolerations"
_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


class ClusterTolerations(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for namespaces without annotations."""

    default: list[Json] = []
    whitelist: list[Json] = []


class PodTolerationRestriction(Plugin):
    covers = resources("pods")

    def __init__(self, namespaces: Lister, cluster: ClusterTolerations) -> None:
        self._namespaces = namespaces
        self._cluster = cluster

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "pods"):
            return
        assert obj is not None
        spec = obj["spec"]
        extra: list[Json] = []
        if operation == "CREATE":
            own = self._annotated(context, _DEFAULT)
            extra = list(self._cluster.default if own is None else own)
        if quality_of_service(spec) != "BestEffort":
            extra.append(dict(_MEMORY_PRESSURE))
        if extra:
            spec["tolerations"] = merged([*spec.get("tolerations", ()), *extra])
        self._check(context, spec)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation in ("CREATE", "UPDATE") and is_of(context, "", "pods"):
            assert obj is not None
            self._check(context, obj["spec"])

    def _check(self, context: Context, spec: Json) -> None:
        tolerations = spec.get("tolerations")
        if not tolerations:
            return
        own = self._annotated(context, _WHITELIST)
        scope, whitelist = ("cluster", self._cluster.whitelist) if own is None else ("namespace", own)
        if whitelist and not all(any(includes(wide, each) for wide in whitelist) for each in tolerations):
            why = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"
            raise Unknown.of(f"{why} {scope} whitelist")

    def _annotated(self, context: Context, annotation: str) -> list[Json] | None:
        """The tolerations in an annotation of the namespace; None without the annotation."""
        namespace = self._namespaces.get(context.route.namespace)
        if namespace is None:
            raise NotFound.of(GroupResource("", "namespaces"), context.route.namespace)
        text = namespace["metadata"].get("annotations", {}).get(annotation)
        if not text:
            return text if text is None else []
        try:
            value: Any = decode_json(text.encode())
        except DecodeError as error:
            raise Unknown.of(str(error)) from None
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            wrong, kind = (value, "[]v1.Toleration") if not isinstance(value, list) else (value[0], "v1.Toleration")
            raise Unknown.of(f"json: cannot unmarshal {json_type(wrong)} into Go value of type {kind}")
        return value
