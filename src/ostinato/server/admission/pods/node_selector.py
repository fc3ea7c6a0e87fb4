"""PodNodeSelector: restricts the Pods of a namespace to the nodes that an annotation or the configuration selects.

- The annotation `scheduler.alpha.kubernetes.io/node-selector` of the namespace is merged into the Pod's `nodeSelector`;
  without it, the configuration's `clusterDefaultNodeSelector` is.
- The configuration's selector of the namespace is a whitelist: a Pod may use no other labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Forbidden, InternalError, Unknown
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import is_of
from ostinato.server.admission.pods.label_map import label_map
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT = "clusterDefaultNodeSelector"


class PodNodeSelector(Plugin):
    covers = resources("pods")

    def __init__(self, namespaces: Lister, selectors: Mapping[str, str]) -> None:
        self._namespaces = namespaces
        self._selectors = selectors

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if operation != "CREATE" or not is_of(context, "", "pods"):
            return
        assert obj is not None
        selector = self._checked(context, obj)
        if selector:
            obj["spec"]["nodeSelector"] = {**selector, **obj["spec"].get("nodeSelector", {})}
        self._check_whitelist(context, obj)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if operation != "CREATE" or not is_of(context, "", "pods"):
            return
        assert obj is not None
        self._checked(context, obj)
        self._check_whitelist(context, obj)

    def _checked(self, context: Context, pod: Json) -> dict[str, str]:
        """The selector of the namespace; Forbidden if the Pod's conflicts with it."""
        selector = self._selector(context.route.namespace)
        own = pod["spec"].get("nodeSelector", {})
        if any(own.get(key, value) != value for key, value in selector.items()):
            raise _forbidden(context, pod, "pod node label selector conflicts with its namespace node label selector")
        return selector

    def _check_whitelist(self, context: Context, pod: Json) -> None:
        whitelist = _parsed(self._selectors.get(context.route.namespace, ""))
        own = pod["spec"].get("nodeSelector", {})
        if whitelist and any(whitelist.get(key) != value for key, value in own.items()):
            raise _forbidden(context, pod, "pod node label selector labels conflict with its namespace whitelist")

    def _selector(self, name: str) -> dict[str, str]:
        namespace = self._namespaces.get(name)
        if namespace is None:
            raise InternalError.of(f"namespace {name} does not exist")
        annotations = namespace["metadata"].get("annotations", {})
        return _parsed(annotations[_ANNOTATION] if _ANNOTATION in annotations else self._selectors.get(_DEFAULT, ""))


def _parsed(selector: str) -> dict[str, str]:
    try:
        return label_map(selector)
    except ValueError as error:
        raise Unknown.of(str(error)) from None


def _forbidden(context: Context, pod: Json, why: str) -> Forbidden:
    return Forbidden.of(context.resource.group_resource, pod["metadata"].get("name", ""), why)
