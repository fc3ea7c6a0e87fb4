""".helmignore: which files of a chart's directory are no part of the chart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ostinato.charts.chart import ChartError
from ostinato.charts.load.shell_match import BadPatternError, shell_match


@dataclass(frozen=True, slots=True)
class _Rule:
    matches: Callable[[str], bool]
    negated: bool
    directories_only: bool


class IgnoreRules:
    """Rules in the order of their lines; the first one that decides wins."""

    def __init__(self, text: str = "") -> None:
        self._rules: list[_Rule] = []
        for line in text.removeprefix("\ufeff").splitlines():
            self._add(line.strip())
        self._add("templates/.?*")

    def ignores(self, path: str, *, directory: bool) -> bool:
        """Whether a path within the chart is ignored. A negated rule ignores what it does not match, as in Helm."""
        for rule in self._rules:
            if rule.negated:
                if (rule.directories_only and not directory) or not rule.matches(path):
                    return True
                continue
            if rule.directories_only and not directory:
                continue
            if rule.matches(path):
                return True
        return False

    def _add(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        if "**" in line:
            raise ChartError(".helmignore: double-star (**) syntax is not supported")
        try:
            shell_match(line, "abc")
        except BadPatternError:
            raise ChartError(f".helmignore: syntax error in pattern: {line}") from None
        negated = line.startswith("!")
        pattern = line.removeprefix("!")
        directories_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        anchored = "/" in pattern
        wanted = pattern.removeprefix("/")

        def matches(path: str) -> bool:
            try:
                return shell_match(wanted, path if anchored else re.split("/", path)[-1])
            except BadPatternError:
                return False

        self._rules.append(_Rule(matches, negated, directories_only))
