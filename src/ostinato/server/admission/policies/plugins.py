"""Plugins of ValidatingAdmissionPolicy and MutatingAdmissionPolicy.

CEL and the policy engine are imported with the first policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.policies.matching import Attributes, exempt
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.admission.policies.mutating import MutatingPolicies
    from ostinato.server.admission.policies.validating import ValidatingPolicies
    from ostinato.server.request.context import Context
    from ostinato.server.resources.lister import Lister
    from ostinato.server.resources.registry import Registry


class MutatingAdmissionPolicyPlugin(Plugin):
    def __init__(
        self, registry: Registry, kinds: tuple[Lister, Lister], namespaces: Lister, authorizer: Authorizer
    ) -> None:
        self._arguments = (registry, kinds, namespaces, authorizer)
        self.skip_while_empty = kinds[1].present  # policies without bindings have no effect
        self._policies: MutatingPolicies | None = None

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if not _unused(self._arguments[1]) and not exempt(context):
            await self._loaded().mutate(Attributes(context, operation, obj, old, options))

    async def reinvoke(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if not _unused(self._arguments[1]) and not exempt(context):
            await self._loaded().mutate(Attributes(context, operation, obj, old, options), reinvocation=True)

    def _loaded(self) -> MutatingPolicies:
        if self._policies is None:
            from ostinato.server.admission.policies.mutating import MutatingPolicies  # noqa: PLC0415 - see above

            self._policies = MutatingPolicies(*self._arguments)
        return self._policies


class ValidatingAdmissionPolicyPlugin(Plugin):
    def __init__(
        self, registry: Registry, kinds: tuple[Lister, Lister], namespaces: Lister, authorizer: Authorizer
    ) -> None:
        self._arguments = (registry, kinds, namespaces, authorizer)
        self.skip_while_empty = kinds[1].present  # policies without bindings have no effect
        self._policies: ValidatingPolicies | None = None

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if _unused(self._arguments[1]) or exempt(context):
            return
        if self._policies is None:
            from ostinato.server.admission.policies.validating import ValidatingPolicies  # noqa: PLC0415 - see above

            self._policies = ValidatingPolicies(*self._arguments)
        await self._policies.validate(Attributes(context, operation, obj, old, options))


def _unused(kinds: tuple[Lister, Lister]) -> bool:
    """Whether there are no policies or no bindings."""
    policies, bindings = kinds[0].collection, kinds[1].collection
    return not (bindings.entries or bindings.pending) or not (policies.entries or policies.pending)
