"""Rules of customize hooks as selections of related objects.

With a v1 hook, a namespaced parent sees related objects of its own namespace; rules for others are errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api import accessors as access
from ostinato.client.discovery.mapping import Mapper
from ostinato.frontends.composite.meta.contract import RelatedRule
from ostinato.frontends.composite.meta.kinds import resolve
from ostinato.frontends.kernel.related import Selection
from ostinato.frontends.kernel.sync import DeciderError, Json


async def selections(mapper: Mapper, parent: Json, rules: Iterable[RelatedRule], *, sees_all: bool) -> list[Selection]:
    """Return what the rules select for a parent. Raises DeciderError for a rule that is not possible.

    `sees_all`: a namespaced parent sees objects of all namespaces.
    """
    return [
        await _selection(mapper, parent, rule, f"answer of the customize hook: relatedResources[{place}]", sees_all)
        for place, rule in enumerate(rules)
    ]


async def _selection(mapper: Mapper, parent: Json, rule: RelatedRule, where: str, sees_all: bool) -> Selection:
    view = await resolve(mapper, rule.api_version, rule.resource)
    assert view.info is not None
    home = access.namespace(parent)
    namespace = (rule.namespace or "") if view.info.namespaced else ""
    if rule.namespace_selector is not None and not view.info.namespaced:
        raise DeciderError(f"{where}: namespaceSelector: {view.gvk.kind} is cluster-scoped; remove it")
    if home and view.info.namespaced and not sees_all:
        if rule.namespace_selector is not None:
            raise DeciderError(f"{where}: namespaceSelector: needs hook version v2 for a namespaced parent")
        if namespace not in ("", home):
            raise DeciderError(
                f"{where}: namespace: {namespace!r} is not that of the parent, {home!r}; use hook version v2"
            )
        namespace = home
    return Selection(
        gvk=view.gvk,
        namespace=namespace,
        names=tuple(rule.names or ()),
        labels=rule.label_selector,
        namespace_labels=rule.namespace_selector,
    )
