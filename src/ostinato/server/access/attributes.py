"""Request attributes: what authorization, impersonation and audit decide by."""

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
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # escaped: a browser must not take a message for HTML


class RequestAttributes(NamedTuple):
    """The verb, and the resource or the non-resource path that a request is for.

    - `path`: None for a resource request; for a non-resource request only `verb` and `path` are set.
    - `field_selector`, `label_selector`: of a list, watch or deletecollection. Empty if the request has none or they
      cannot be parsed: the attributes then cover all objects.
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
        """The Forbidden error for these attributes, with kube-apiserver's message."""
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
    """The attributes of a request; without a route it is a non-resource request."""
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
    """Add the request's selectors; a metadata.name selector also sets the name."""
    terms = field_terms(request.parameter("fieldSelector"))
    requirements = label_requirements(request.parameter("labelSelector"))
    name = attributes.name
    if not name and attributes.verb != "deletecollection":
        name = next((term.value for term in terms if term.field == "metadata.name" and not term.negated), "")
        name = "" if names.name_is_path_segment(name) else name
    return attributes._replace(name=name, field_selector=terms, label_selector=requirements)


def field_terms(text: str) -> tuple[fields.Term, ...]:
    """The terms of a field selector; empty if it cannot be parsed, which the verb reports."""
    try:
        return fields.parse(text).terms
    except ValueError:
        return ()


def label_requirements(text: str) -> tuple[labels.Requirement, ...]:
    """The requirements of a label selector; empty if it cannot be parsed."""
    try:
        return labels.parse(text).requirements
    except ValueError:
        return ()
