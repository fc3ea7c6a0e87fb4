"""What is asked: a verb, of a resource or of a path, as access is decided by it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from ostinato.api.errors import Forbidden
from ostinato.api.gvk import GroupResource
from ostinato.api.selectors import fields, labels
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.server.request import Request, User
from ostinato.server.request.route import Route

_SELECTING = frozenset({"list", "watch", "deletecollection"})
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # what a browser could take for HTML


class RequestAttributes(NamedTuple):
    """`path` is None for a resource; otherwise it and the verb are all there is.

    The selectors narrow what a list, a watch or a deletion of many reaches. They are empty where a request has none, or
    where they cannot be parsed: then the question is about all objects.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None
    version: str = "*"
    field_selector: tuple[fields.Term, ...] = ()
    label_selector: tuple[labels.Requirement, ...] = ()

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


def attributes_of(request: Request, route: Route | None) -> RequestAttributes:
    """What a request asks; without a route it is for a path."""
    if route is None:
        return RequestAttributes(request.method.lower(), path=unquote(request.path))
    attributes = RequestAttributes(
        route.verb, route.group, route.resource, route.subresource, route.namespace, route.name, None, route.version
    )
    query = request.query_string
    if query and route.verb in _SELECTING and not route.old_watch and ("Selector" in query or "%" in query):
        return _selecting(attributes, request)
    return attributes


def _selecting(attributes: RequestAttributes, request: Request) -> RequestAttributes:
    """The question with the selectors of the request; one that can match a single object names it."""
    terms = field_terms(request.parameter("fieldSelector"))
    requirements = label_requirements(request.parameter("labelSelector"))
    name = attributes.name
    if not name and attributes.verb != "deletecollection":
        name = next((term.value for term in terms if term.field == "metadata.name" and not term.negated), "")
        name = "" if names.name_is_path_segment(name) else name
    return attributes._replace(name=name, field_selector=terms, label_selector=requirements)


def field_terms(text: str) -> tuple[fields.Term, ...]:
    """The terms of a field selector; none if it cannot be parsed, which the verb reports."""
    try:
        return fields.parse(text).terms
    except ValueError:
        return ()


def label_requirements(text: str) -> tuple[labels.Requirement, ...]:
    """The requirements of a label selector; none if it cannot be parsed."""
    try:
        return labels.parse(text).requirements
    except ValueError:
        return ()
