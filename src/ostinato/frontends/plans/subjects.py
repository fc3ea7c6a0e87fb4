"""Subjects of plans: the kinds of objects that plans run on, and how each names its version and its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

from ostinato.api import accessors as access
from ostinato.api.codec import from_dict
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.views import Unstructured, View
from ostinato.crd.rbac import Access
from ostinato.frontends.plans.api import (
    FINALIZER,
    CompletedPlan,
    Execution,
    Instance,
    Operator,
    OperatorVersion,
    PlanExecution,
    PlanStatus,
)
from ostinato.frontends.plans.decisions.deciding import Version
from ostinato.frontends.plans.engine.execute import Fatal
from ostinato.frontends.plans.running import PlanRun
from ostinato.frontends.plans.tasks.cluster import Cluster

Json = dict[str, Any]

EVERYTHING: Final = Access(verbs=("*",), groups=("*",), resources=("*",))


class Run(Protocol):
    """The plans of an object."""

    async def step(self, execution: Execution, status: PlanStatus, now: Time) -> Fatal | None:
        """Try what is left of the plan that runs, and record it in `status`."""

    async def objects(self, completed: list[CompletedPlan]) -> list[Json]:
        """Return the objects that completed plans have left, as they should be."""


class Subject(ABC):
    """A kind of objects that plans run on."""

    view: View[Any]
    finalizer = FINALIZER
    repairs_drift = False  # unless an object says otherwise
    kinds: tuple[Any, ...] = ()  # classes of the kinds, for their definitions
    definitions: tuple[Json, ...] = ()  # CustomResourceDefinitions of kinds without a class
    access: tuple[Access, ...] = (EVERYTHING,)  # what plans may do: templates can hold any kind

    @abstractmethod
    def reference(self, instance: Json) -> tuple[str, str]:
        """Return name and namespace of the version that an object wants."""

    @abstractmethod
    async def version(self, name: str, namespace: str, client: CachedClient) -> Version | None:
        """Return a version; None if it does not exist."""

    @abstractmethod
    def parameters(self, instance: Json) -> dict[str, str]:
        """Return the parameters of an object, as they are stored."""

    def run(self, owner: Json, version: Version, cluster: Cluster) -> Run:
        """Return the plans of a version, for one object."""
        return PlanRun(owner, version, cluster)

    def execution(self, instance: Json) -> PlanExecution:  # noqa: ARG002 - of kinds that have it
        """Return the plan that the spec of an object requests."""
        return PlanExecution()


class Instances(Subject):
    """Instances of KUDO's API, whose versions are OperatorVersions."""

    view = Unstructured.of("kudo.dev/v1beta1", "Instance")
    kinds = (Instance, OperatorVersion, Operator)

    def reference(self, instance: Json) -> tuple[str, str]:
        found = (instance.get("spec") or {}).get("operatorVersion") or {}
        return str(found.get("name") or ""), str(found.get("namespace") or access.namespace(instance))

    async def version(self, name: str, namespace: str, client: CachedClient) -> Version | None:
        if not name:
            return None
        found = await client.get(OperatorVersion, name, namespace=namespace, missing=None)
        return None if found is None else Version(name, namespace, found.spec)

    def parameters(self, instance: Json) -> dict[str, str]:
        found = (instance.get("spec") or {}).get("parameters") or {}
        return {str(name): str(value) for name, value in found.items()}

    def execution(self, instance: Json) -> PlanExecution:
        found = (instance.get("spec") or {}).get("planExecution") or {}
        return from_dict(PlanExecution, found)
