"""Inputs of the objects: concrete values for YAML, expressions for a chart."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.packaging.manifest import formatted, given
from ostinato.packaging.overrides import plain
from ostinato.packaging.package import Package

Json = dict[str, Any]


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of type Any are JSON values or `Expression`s; lists may contain `Items`."""

    package: Package
    name: Any
    namespace: Any
    account: Any
    account_annotations: Any
    lease: Any
    labels: Any
    selector: Any
    annotations: Any
    pod_labels: Any
    pod_annotations: Any
    replicas: Any
    strategy: Any
    image: Any
    image_pull_policy: Any
    image_pull_secrets: Any
    args: list[Any]
    env: list[Any]
    env_from: Any
    resources: Any
    pod_security_context: Any
    node_selector: Any
    tolerations: Any
    affinity: Any
    topology_spread_constraints: Any
    priority_class_name: Any
    volumes: list[Any]
    volume_mounts: list[Any]

    def named(self, suffix: str) -> Any:
        """Return the name with a suffix."""
        return formatted(f"%s-{suffix}", self.name)

    def metadata(self, name: Any, *, namespaced: bool = True) -> Json:
        found = given({"name": name, "labels": self.labels, "annotations": self.annotations})
        return {**found, "namespace": self.namespace} if namespaced else found


def concrete_inputs(package: Package) -> Inputs:
    """Return the values of a package, complete."""
    overrides = package.overrides
    selector = {"app.kubernetes.io/name": package.name, "app.kubernetes.io/instance": package.name}
    version = package.version.replace("+", "_")[:63].rstrip("._-")
    labels = {"app.kubernetes.io/version": version, **overrides.labels, **selector}
    return Inputs(
        package=package,
        name=package.name,
        namespace=package.namespace,
        account=package.account,
        account_annotations={**overrides.annotations, **overrides.service_account.annotations},
        lease=package.lease,
        labels=labels,
        selector=selector,
        annotations=dict(overrides.annotations),
        pod_labels={**labels, **overrides.pod_labels},
        pod_annotations={**overrides.annotations, **overrides.pod_annotations},
        replicas=overrides.replicas,
        strategy=strategy(elects=package.elects),
        image=str(package.image),
        image_pull_policy=overrides.image_pull_policy,
        image_pull_secrets=plain(overrides.image_pull_secrets),
        args=list(overrides.args),
        env=environment(package),
        env_from=list(overrides.env_from),
        resources=plain(overrides.resources),
        pod_security_context=overrides.pod_security_context,
        node_selector=dict(overrides.node_selector),
        tolerations=list(overrides.tolerations),
        affinity=overrides.affinity,
        topology_spread_constraints=list(overrides.topology_spread_constraints),
        priority_class_name=overrides.priority_class_name,
        volumes=list(overrides.volumes),
        volume_mounts=list(overrides.volume_mounts),
    )


def strategy(*, elects: bool) -> Json:
    """Return a strategy with which two replicas never work at the same time."""
    return {"type": "RollingUpdate" if elects else "Recreate"}


def environment(package: Package) -> list[Json]:
    return [
        {"name": name, "value": value} if isinstance(value, str) else {"name": name, "valueFrom": value}
        for name, value in sorted(package.overrides.env.items())
    ]
