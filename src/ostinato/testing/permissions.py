"""Missing permissions: how to declare what the derived role of a controller does not grant."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ostinato.controllers.current import current_reconcile

# The message of an RBAC authorizer, as kube-apiserver writes it.
_DENIED: Final = re.compile(
    r'User "[^"]*" cannot (?P<verb>\S+) (?:resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)|path "(?P<path>[^"]*)")'
)
_OWNED: Final = ("get", "list", "watch", "create", "patch", "delete")  # verbs that `owns` grants
_READ: Final = ("get", "list", "watch")


def explained(body: bytes) -> str | None:
    """Return the message of a Forbidden response with what to declare; None if RBAC is not the reason."""
    try:
        message = msgspec.json.decode(body)["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    found = _DENIED.search(message)
    if found is None:
        return None
    running = current_reconcile()
    who = "the manager" if running is None else f"controller {running.controller}"
    return f"{message}; {who} lacks the permission: {_remedy(found)}"


def _remedy(found: re.Match[str]) -> str:
    verb, path = found["verb"], found["path"]
    if path is not None:
        return f'add access=[Access(urls=("{path}",), verbs=("{verb}",))] to @controller'
    access = f'Access(groups=("{found["group"]}",), resources=("{found["resource"]}",), verbs=("{verb}",))'
    remedy = f"add access=[{access}] to @controller, or .needs({access}) to its builder"
    if "/" in found["resource"] or verb not in _OWNED:
        return remedy
    where = "owns=[...]" if verb not in _READ else "owns=[...] or watches=[...]"
    return f"{remedy}; or the kind to {where}, which grants {', '.join(_OWNED if verb not in _READ else _READ)}"
