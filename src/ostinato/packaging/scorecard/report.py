"""Reports: text for people, and JSON in the format of operator-sdk's scorecard, v1alpha3."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ostinato.packaging.scorecard.result import Result

_API: Final = "scorecard.operatorframework.io/v1alpha3"


def text_report(results: Sequence[Result]) -> str:
    """Return a line for each check, its findings below it, and the totals."""
    width = max((len(each.name) for each in results), default=0)
    lines = []
    for each in results:
        note = f"  {each.skipped}" if each.skipped else ""
        lines.append(f"{each.state}  {each.name:{width}}{note}".rstrip())
        lines += [f"      {text}" for text in each.errors]
        lines += [f"      suggestion: {text}" for text in each.suggestions]
    totals = Counter(each.state for each in results)
    suggestions = sum(len(each.suggestions) for each in results)
    summary = f"{totals['pass']} passed, {totals['fail']} failed, {totals['skip']} skipped, {suggestions} suggestions"
    return "\n".join([*lines, "", summary, ""])


def json_report(results: Sequence[Result]) -> str:
    """Return a TestList. Skipped checks have the state `error`, as the format has no other."""
    items = [
        {
            "apiVersion": _API,
            "kind": "Test",
            "spec": {"labels": {"suite": each.suite, "test": f"{each.name}-test"}},
            "status": {
                "results": [
                    {
                        "name": each.name,
                        "state": "error" if each.skipped else each.state,
                        "errors": [each.skipped] if each.skipped else list(each.errors),
                        "suggestions": list(each.suggestions),
                    }
                ]
            },
        }
        for each in results
    ]
    return json.dumps({"apiVersion": _API, "kind": "TestList", "items": items}, indent=2, ensure_ascii=False) + "\n"
