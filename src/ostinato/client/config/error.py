"""Errors of a configuration, with file, entry, field and fix."""

from __future__ import annotations


class ConfigError(ValueError):
    """Invalid configuration. `problems`: all problems, not only the first."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        return "\n".join([f"{len(self.problems)} problems:", *[f"- {problem}" for problem in self.problems]])


class NoConfig(ConfigError):  # noqa: N818
    """No configuration: there is no kubeconfig, and the process does not run in a Pod."""


class NotInCluster(ConfigError):  # noqa: N818
    """The process does not run in a Pod."""
