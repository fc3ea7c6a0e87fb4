"""The authorizer library: checks of a user's permissions.

`authorizer.group('').resource('pods').namespace('x').check('create').allowed()` builds a question step by step; `check`
asks it. Who answers is given to the authorizer that an evaluation gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ostinato.api.validation import names
from ostinato.cel.values import CelError, Library


class Question(NamedTuple):
    """What is asked: a path, or a resource."""

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None  # of whom it is asked, if not of who makes the request


class Answer(NamedTuple):
    allowed: bool
    reason: str = ""
    error: str = ""


Ask = Callable[[Question], Answer]


class Authorizer(Library):
    """A question that is being built; which steps it has taken is its type."""

    __slots__ = ("ask", "question", "type_name")

    def __init__(self, ask: Ask, question: Question | None = None, stage: str = "Authorizer") -> None:
        self.ask = ask
        self.question = question or Question()
        self.type_name = f"kubernetes.authorization.{stage}"

    def step(self, stage: str, **parts: Any) -> Authorizer:
        return Authorizer(self.ask, self.question._replace(**parts), stage)


class Decision(Library):
    __slots__ = ("answer",)
    type_name = "kubernetes.authorization.Decision"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _check(authorizer: Authorizer, verb: str) -> Decision:
    return Decision(authorizer.ask(authorizer.question._replace(verb=verb)))


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
