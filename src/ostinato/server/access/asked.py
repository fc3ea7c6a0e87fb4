"""What is asked: a verb, of a resource or of a path, as access is decided by it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from ostinato.api import fields, names
from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.api.quoting import quote
from ostinato.server.request import Request, User
from ostinato.server.route import Route

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # what a browser could take for HTML


class Asked(NamedTuple):
    """`path` is None for a resource; otherwise it and the verb are all there is."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None

    def refusal(self, user: User, reason: str = "") -> Forbidden:
        """That the user may not do this, in the words that clients know."""
        what = f"User {quote(user.name)} cannot {self.verb}"
        if self.path is not None:
            what = f"{what} path {quote(self.path)}"
        else:
            resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
            where = f"in the namespace {quote(self.namespace)}" if self.namespace else "at the cluster scope"
            what = f"{what} resource {quote(resource)} in API group {quote(self.group)} {where}"
        what = what.translate(_MARKUP)
        about = GroupResource(self.group, self.resource)
        return Forbidden.of(about, self.name, f"{what}: {reason}" if reason else what)


def asked_by(request: Request, route: Route | None) -> Asked:
    """What a request asks; without a route it is for a path."""
    if route is None:
        return Asked(request.method.lower(), path=unquote(request.path))
    name = route.name
    if not name and "fieldSelector" in request.query_string and route.verb in ("list", "watch") and not route.old_watch:
        name = _selected_name(request.parameter("fieldSelector"))
    return Asked(route.verb, route.group, route.resource, route.subresource, route.namespace, name)


def _selected_name(selector: str) -> str:
    """The name of the one object that a selector of fields can match, "" if it could match others, too."""
    try:
        name = fields.parse(selector).requires_exact_match("metadata.name") or ""
    except ValueError:  # the verb tells that
        return ""
    return "" if names.name_is_path_segment(name) else name
