"""The modes of authorization that an operator chooses, and the chain that is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.access.authorization.decision import Mode
from ostinato.server.access.authorization.fixed import AlwaysAllow, AlwaysDeny
from ostinato.server.access.authorization.node import NodeAuthorizer
from ostinato.server.access.authorization.rbac import Rbac
from ostinato.server.access.authorization.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from ostinato.server.resources.registry import Registry

DEFAULT: Final = ("Node", "RBAC")


class AuthorizationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`modes`: in the order in which they are asked."""

    modes: tuple[str, ...] = DEFAULT


def make_authorizer(
    registry: Registry, settings: AuthorizationSettings, node_rules: Callable[[], list[Rule]]
) -> Authorizer:
    """The authorizer of a server. `node_rules`: what all nodes may do, as Kubernetes ships it."""
    rbac = Rbac(registry)
    made: dict[str, Callable[[], Mode]] = {
        "Node": lambda: NodeAuthorizer(registry, node_rules),
        "RBAC": lambda: rbac,
        "AlwaysAllow": AlwaysAllow,
        "AlwaysDeny": AlwaysDeny,
    }
    return Authorizer(rbac, [made[mode]() for mode in settings.modes])
