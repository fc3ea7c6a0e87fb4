"""Who may ask for paths that name no resource: what the default roles of Kubernetes grant.

Anybody may ask whether the server is well and which version it is; who is known may discover, too; administrators may
do everything.
"""

from __future__ import annotations

from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.server.request import User

_PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_DISCOVERY = ("/api", "/apis", "/openapi")


def check_path(user: User, method: str, path: str) -> None:
    """Forbidden if the user may not do this."""
    if "system:masters" in user.groups or (method == "GET" and _may_read(user, path)):
        return
    raise Forbidden.of(GroupResource("", ""), "", f'User "{user.name}" cannot {method.lower()} path "{path}"')


def _may_read(user: User, path: str) -> bool:
    if path in _PUBLIC:
        return True
    known = "system:authenticated" in user.groups
    return known and any(path == root or path.startswith(root + "/") for root in _DISCOVERY)
