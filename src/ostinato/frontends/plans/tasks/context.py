"""What a task is run with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ostinato.frontends.plans.tasks.cluster import Cluster
from ostinato.frontends.plans.tasks.decoration import Names
from ostinato.frontends.plans.tasks.manifests import objects_of, variables
from ostinato.world import World

Json = dict[str, Any]


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `owner`: the object that the plan runs on.
    - `params`, `args`, `pipes`: `.Params`, `.Args` and `.Pipes` in templates.
    """

    cluster: Cluster
    owner: Json
    names: Names
    templates: Mapping[str, str]
    params: Mapping[str, Any]
    args: Mapping[str, str]
    pipes: Mapping[str, str]

    def objects(self, resources: Iterable[str]) -> list[Json]:
        """Render templates and parse their objects. Raises FatalError."""
        return objects_of(self.templates, resources, self.values, self.world)

    @property
    def world(self) -> World:
        return self.cluster.client.world

    @property
    def values(self) -> dict[str, Any]:
        """The variables of templates."""
        return {
            **variables(self.names, self.params),
            "PlanName": self.names.plan,
            "PhaseName": self.names.phase,
            "StepName": self.names.step,
            "Pipes": dict(self.pipes),
            "Args": dict(self.args),
        }
