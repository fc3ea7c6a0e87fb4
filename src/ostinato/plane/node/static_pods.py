"""Static Pods: run by the node agent from manifests in a directory, without the API server.

A mirror Pod on the API server shows the status of each. A deleted mirror is recreated; the Pod is removed with its
manifest, and replaced when that changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.codec import from_dict
from ostinato.api.gvk import NamespacedName
from ostinato.api.owners import reference_to
from ostinato.api.wire.yaml import decode_yaml
from ostinato.client.client import Client
from ostinato.controllers import Dependencies
from ostinato.kinds.core_v1 import Node, Pod

MIRROR: Final = "kubernetes.io/config.mirror"
_HASH: Final = "kubernetes.io/config.hash"
SEEN: Final = "kubernetes.io/config.seen"
SOURCE: Final = "kubernetes.io/config.source"
_POLL_INTERVAL: Final = 20.0  # seconds
_MAX_BYTES: Final = 10 << 20  # bytes of a manifest
_GRACE: Final = 30

StaticPodSet = dict[NamespacedName, Pod]


class ManifestError(ValueError):
    """A file is not a valid Pod manifest."""


class StaticPodSource:
    """A runnable that polls the manifests of one node."""

    needs_leader_election = False

    def __init__(self, node: str, directory: Path, on_change: Callable[[str, StaticPodSet], None]) -> None:
        """`tell(node, pods)` is called with what was found, whenever that has changed."""
        self.name = f"static-pods-{node}"
        self._node = node
        self._directory = directory
        self._on_change = on_change

    async def run(self, dependencies: Dependencies) -> None:
        known: StaticPodSet = {}
        reported: set[str] = set()
        while True:
            found, problems = read_manifests(self._directory, self._node)
            for problem in sorted(problems - reported):
                dependencies.logger.warning("static Pod skipped error=%s", problem)
            reported = problems
            if {key: pod.metadata.uid for key, pod in found.items()} != {
                key: pod.metadata.uid for key, pod in known.items()
            }:
                known = found
                self._on_change(self._node, found)
            await dependencies.world.clock.sleep(_POLL_INTERVAL)


def read_manifests(directory: Path, node: str) -> tuple[StaticPodSet, set[str]]:
    """Return the static Pods of a directory, and the errors of invalid files."""
    pods: StaticPodSet = {}
    problems: set[str] = set()
    if directory.is_dir():
        for path in sorted(directory.iterdir()):
            if path.name.startswith(".") or not path.is_file():
                continue
            try:
                pod = _parse(path, node)
            except ManifestError as error:
                problems.add(str(error))
                continue
            pods.setdefault(NamespacedName(pod.metadata.namespace, pod.metadata.name), pod)
    return pods, problems


def _parse(path: Path, node: str) -> Pod:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ManifestError(f"{path}: larger than {_MAX_BYTES} bytes")
        text = path.read_bytes()
        decoded = decode_yaml(text)
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: {error}") from None
    if not isinstance(decoded, dict) or decoded.get("kind") != "Pod" or decoded.get("apiVersion") != "v1":
        raise ManifestError(f"{path}: want a manifest of kind Pod, apiVersion v1")
    try:
        pod = from_dict(Pod, decoded)
    except ValueError as error:
        raise ManifestError(f"{path}: {error}") from None
    if not pod.metadata.name or not pod.spec.containers:
        raise ManifestError(f"{path}: want a name and at least one container")
    digest = hashlib.md5(text + node.encode(), usedforsecurity=False).hexdigest()
    known, spec = pod.metadata, pod.spec
    known.name = f"{known.name}-{node}"
    known.namespace = known.namespace or "default"
    known.uid = digest
    known.annotations = {**known.annotations, _HASH: digest, SOURCE: "file"}
    spec.node_name = node
    spec.restart_policy = spec.restart_policy or "Always"
    spec.automount_service_account_token = False  # static Pods have no service account
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = _GRACE
    return pod


async def ensure_mirror(static: Pod, client: Client, seen: str) -> Pod:
    """Return the mirror of a static Pod, created or replaced if needed; `NotFound` until its Node is registered."""
    known = static.metadata
    found = await _stored_mirror(static, client)
    if found is not None:
        if found.metadata.annotations.get(MIRROR) == known.uid and found.metadata.deletion_timestamp is None:
            return found
        await client.delete(found, grace_period=0)
    node = await client.get(Node, static.spec.node_name or "")
    owner = reference_to(node)
    owner.controller = True
    annotations = {**known.annotations, MIRROR: known.uid, SEEN: seen}
    metadata = msgspec.structs.replace(known, uid="", annotations=annotations, owner_references=[owner])
    return await client.create(msgspec.structs.replace(static, metadata=metadata))


async def remove_mirror(static: Pod, client: Client) -> None:
    found = await _stored_mirror(static, client)
    if found is not None and MIRROR in found.metadata.annotations:
        await client.delete(found, grace_period=0, missing_ok=True)


async def _stored_mirror(static: Pod, client: Client) -> Pod | None:
    """Return the Pod with the mirror's name; None if there is none.

    Listed by node, because a node is not authorized to get a Pod that does not exist.
    """
    selector = {"metadata.name": static.metadata.name, "spec.nodeName": static.spec.node_name or ""}
    return next(iter([*await client.list(Pod, namespace=static.metadata.namespace, fields=selector)]), None)


def resolve_mirror(pod: Pod) -> Pod:
    """Return a mirror with the uid of its static Pod; other Pods unchanged."""
    uid = pod.metadata.annotations.get(MIRROR)
    if uid is None:
        return pod
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


def static_pod_uids(directories: Mapping[str, Path]) -> set[str]:
    """Return the uids of all static Pods. `directories`: manifest directories by node."""
    return {
        pod.metadata.uid
        for node, directory in directories.items()
        for pod in read_manifests(directory, node)[0].values()
    }
