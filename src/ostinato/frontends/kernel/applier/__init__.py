"""The set applier: the objects of an owner, applied, updated by strategies, and pruned."""

from ostinato.frontends.kernel.applier.applier import SetApplier
from ostinato.frontends.kernel.applier.kinds import AnnotatedKinds, Kinds, StaticKinds
from ostinato.frontends.kernel.applier.members import MARKED
from ostinato.frontends.kernel.applier.order import install_order, uninstall_order
from ostinato.frontends.kernel.applier.outcome import Action, ApplyError, Change, Held, Outcome, SetError
from ostinato.frontends.kernel.applier.refs import ObjectRef
from ostinato.frontends.kernel.applier.strategies import IN_PLACE, Method, Roll, Strategy, next_in_roll
from ostinato.frontends.kernel.applier.tracking import (
    CONTROLLER,
    OWNER,
    OWNER_UID,
    is_member,
    is_reachable,
    marked_owner,
)

__all__ = [
    "CONTROLLER",
    "IN_PLACE",
    "MARKED",
    "OWNER",
    "OWNER_UID",
    "Action",
    "AnnotatedKinds",
    "ApplyError",
    "Change",
    "Held",
    "Kinds",
    "Method",
    "ObjectRef",
    "Outcome",
    "Roll",
    "SetApplier",
    "SetError",
    "StaticKinds",
    "Strategy",
    "install_order",
    "is_member",
    "is_reachable",
    "marked_owner",
    "next_in_roll",
    "uninstall_order",
]
