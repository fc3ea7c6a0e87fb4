"""Intended differences between the answers, with their reasons."""

from __future__ import annotations

from typing import Final

from tests.contract.access.answers import Answer
from tests.contract.access.questions import Question

_REASONS: Final = (  # part of the path, the status codes of both, and the reason
    ("/log", (500, 500), "the Nodes have no agents; the wording differs"),
    ("/exec", (500, 400), "the Nodes have no agents; a request that is no upgrade is refused first here"),
    ("fieldSelector=spec.host", (400, 400), "the message does not name the kind of a field that cannot be selected"),
    ("/openid/v1/jwks", (406, 200), "keys are served to clients that accept JSON, too"),
    ("/pods?dryRun", (422, 201), "a mirror Pod with resource claims, which an administrator makes, is not refused"),
)


def reason(question: Question, theirs: Answer, ours: Answer) -> str:
    """Why the answers to a request may differ, "" if they may not."""
    if "subjectaccessreviews" in question.path and theirs.code == ours.code == 201:
        texts = [dict(each.says) for each in (theirs, ours)]
        named = [text.pop("reason", "") for text in texts]
        if texts[0] == texts[1] and all("RBAC: allowed by ClusterRoleBinding" in each for each in named):
            return "two bindings allow it; kube-apiserver names whichever it finds first"
    for part, codes, why in _REASONS:
        if part in question.path and codes == (theirs.code, ours.code):
            return why
    return ""
