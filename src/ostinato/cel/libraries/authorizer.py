"""The authorizer library: checks of a user's permissions.

`authorizer.group('').resource('pods').namespace('x').check('create').allowed()` builds an access check step by step;
`check` calls the function that the authorizer variable was created with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ostinato.api.validation import names
from ostinato.cel.values import CelError, Library


class AccessCheck(NamedTuple):
    """An access check: for a path or a resource."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None  # the user to check; defaults to the user of the request


class Answer(NamedTuple):
    allowed: bool
    reason: str = ""
    error: str = ""


Ask = Callable[[AccessCheck], Answer]


class Authorizer(Library):
    """An access check under construction; the type depends on the steps so far."""

    __slots__ = ("ask", "check", "type_name")

    def __init__(self, ask: Ask, check: AccessCheck | None = None, stage: str = "Authorizer") -> None:
        self.ask = ask
        self.check = check or AccessCheck()
        self.type_name = f"kubernetes.authorization.{stage}"

    def step(self, stage: str, **parts: Any) -> Authorizer:
        return Authorizer(self.ask, self.check._replace(**parts), stage)


class Decision(Library):
    __slots__ = ("answer",)
    type_name = "kubernetes.authorization.Decision"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _check(authorizer: Authorizer, verb: str) -> Decision:
    return Decision(authorizer.ask(authorizer.check._replace(verb=verb)))


def _part(name: str) -> Callable[[Authorizer, str], Authorizer]:
    return lambda authorizer, value: authorizer.step("ResourceCheck", **{name: value})


def _path(authorizer: Authorizer, path: str) -> Authorizer:
    if not path.strip():
        raise CelError("path must not be empty")
    return authorizer.step("PathCheck", path=path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.name_is_dns_subdomain(name):
        raise CelError("Invalid service account name")
    if names.name_is_dns_label(namespace):
        raise CelError("Invalid service account namespace")
    return authorizer.step("Authorizer", service_account=(namespace, name))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "authorizer_path": _path,
    "authorizer_group": lambda authorizer, group: authorizer.step("GroupCheck", group=group),
    "authorizer_serviceaccount": _service_account,
    "groupcheck_resource": _part("resource"),
    "resourcecheck_subresource": _part("subresource"),
    "resourcecheck_namespace": _part("namespace"),
    "resourcecheck_name": _part("name"),
    "authorizer_fieldselector": _part("field_selector"),
    "authorizer_labelselector": _part("label_selector"),
    "pathcheck_check": _check,
    "resourcecheck_check": _check,
    "decision_allowed": lambda decision: decision.answer.allowed,
    "decision_reason": lambda decision: decision.answer.reason,
    "decision_error": lambda decision: decision.answer.error,
    "decision_errored": lambda decision: bool(decision.answer.error),
}
