"""What is wrong with a configuration, said so that it can be mended: the file, the entry, the field, and what to do."""

from __future__ import annotations


class ConfigError(ValueError):
    """A configuration that cannot be used. `problems` has everything that was found, not only the first."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        return "\n".join([f"{len(self.problems)} problems:", *[f"- {problem}" for problem in self.problems]])


class NoConfig(ConfigError):  # noqa: N818 - it says what there is
    """There is no configuration anywhere: no kubeconfig, and this is no Pod."""


class NotInCluster(ConfigError):  # noqa: N818
    """This process does not run in a Pod of a cluster."""
