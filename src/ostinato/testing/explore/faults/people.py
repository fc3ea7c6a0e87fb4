"""Faults of others: users who act between any two steps of the operator, other controllers, clocks."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.patching import MergePatch
from ostinato.server.faults import Operation
from ostinato.server.request import Answer
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.points import Point, PointKind
from ostinato.testing.explore.world.disk import Place
from ostinato.testing.explore.world.state import BYSTANDER, HANGING, TOUCHED
from ostinato.testing.explore.world.users import delete, owned, scenario_objects

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run

_HANGS: Final = 20.0  # seconds
_DAY: Final = 86_400.0
_HOUR: Final = 3_600.0
_LAST_MOMENT: Final = 0.001
_OTHER: Final = "kube-public"  # a namespace in which nobody uses the operator
_MOMENTS: Final = frozenset({PointKind.WRITE, PointKind.EVENT, PointKind.EXTERNAL})


class EarlyStep(FaultKind):
    """The next step of the scenario happens now, while the operator is at work."""

    name = "early-step"
    points = _MOMENTS
    rank = 1

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        await run.perform_early()
        return None

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        await run.perform_early()

    def before_call(self, run: Run, replica: Replica) -> None:  # noqa: ARG002
        run.soon()


class Touched(FaultKind):
    """A user annotates an object of the scenario just before a write. The annotation has to stay."""

    name = "touched"
    points = frozenset({PointKind.WRITE})
    rank = 2

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        self._uids: dict[str, str] = {}
        for place, metadata in scenario_objects(run):
            if not metadata.deletion_timestamp:
                await _patch(run, place, {"metadata": {"annotations": {TOUCHED: "yes"}}})
                self._uids[metadata.uid] = metadata.name
        return None

    def wrong(self, run: Run) -> list[str]:
        lost = []
        for uid, name in getattr(self, "_uids", {}).items():
            place = run.objects.uids.get(uid)
            if place is not None and TOUCHED.encode() not in run.disk.objects[place][1]:
                lost.append(f"{run.objects.kinds[place[0]].kind} {name}: an annotation of the user was overwritten")
        return lost


class ChildDeleted(FaultKind):
    """Somebody deletes what the operator has made: one object when it appears, or all when nothing is left to do."""

    name = "child-deleted"
    points = frozenset({PointKind.SETTLED, PointKind.EVENT})
    rank = 3

    @classmethod
    def applies(cls, point: Point) -> bool:
        return super().applies(point) and (point.kind is PointKind.SETTLED or point.text.startswith("event ADDED"))

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        name = self.fault.at.text.rpartition(" ")[2]
        for place in owned(run):
            if place[0] == operation.kind and run.objects.stable(place[1]) == name:
                await delete(run, place)
                break

    async def settled(self, run: Run) -> None:
        for place in owned(run):
            await delete(run, place)


class ChildChanged(FaultKind):
    """Somebody changes what the operator has made: a value of a ConfigMap or Secret, a number of replicas.

    Fields that nobody manages keep the change, and are left alone.
    """

    name = "child-changed"
    points = frozenset({PointKind.SETTLED})
    rank = 3

    async def settled(self, run: Run) -> None:
        for place in owned(run):
            value = msgspec.json.decode(run.disk.objects[place][1])
            if isinstance(data := value.get("data"), dict) and data:
                await _patch(run, place, {"data": {min(data): "Y2hhbmdlZA=="}})
            elif isinstance(replicas := value.get("spec", {}).get("replicas"), int) and _is_managed(value, "replicas"):
                await _patch(run, place, {"spec": {"replicas": replicas + 1}})


def _is_managed(value: dict[str, Any], name: str) -> bool:
    """Whether a field of the spec has a manager: a default of the server has none."""
    managed = value["metadata"].get("managedFields") or []
    return any(f"f:{name}" in each.get("fieldsV1", {}).get("f:spec", {}) for each in managed)


class FinalizerHangs(FaultKind):
    """Another controller holds an object with a finalizer: its deletion takes longer."""

    name = "finalizer-hangs"
    points = frozenset({PointKind.EVENT})
    rank = 3

    @classmethod
    def applies(cls, point: Point) -> bool:
        return super().applies(point) and point.text.startswith("event ADDED")

    async def event(self, run: Run, replica: Replica, operation: Operation) -> None:  # noqa: ARG002
        name = self.fault.at.text.rpartition(" ")[2]
        for place, metadata in list(run.objects.metadata.items()):
            named = place[0] == operation.kind and run.objects.stable(place[1]) == name
            if named and BYSTANDER.encode() not in run.disk.objects[place][1]:
                await _patch(run, place, {"metadata": {"finalizers": [*metadata.finalizers, HANGING]}})
                run.when_deleting(metadata.uid, partial(run.later, _HANGS, partial(_release, run, metadata.uid)))
                break


class Bystander(FaultKind):
    """Objects of the same names and labels exist in another namespace. They have to stay as they are."""

    name = "bystander"
    points = frozenset({PointKind.SETTLED})
    rank = 3

    async def settled(self, run: Run) -> None:
        self._made: dict[Place, int] = {}
        for place in owned(run):
            gvk, value = run.objects.kinds[place[0]], msgspec.json.decode(run.disk.objects[place][1])
            metadata = {
                "name": value["metadata"]["name"],
                "namespace": _OTHER,
                "labels": value["metadata"].get("labels", {}),
                "annotations": {BYSTANDER: "yes"},
            }
            rest = {field: each for field, each in value.items() if field not in ("metadata", "status")}
            if not value["metadata"].get("namespace"):
                continue
            made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **rest}
            with suppress(APIError):
                await run.client.in_namespace(_OTHER).create(_without_addresses(made))
                key = (place[0], f"{_OTHER}/{metadata['name']}")
                self._made[key] = run.disk.objects[key][0]

    def wrong(self, run: Run) -> list[str]:
        return [
            f"{place[0]} {place[1]}: {'changed' if place in run.disk.objects else 'deleted'}, and is not the operator's"
            for place, version in getattr(self, "_made", {}).items()
            if run.disk.objects.get(place, (0, b""))[0] != version
        ]


class _Clock(FaultKind):
    """The wall clock of the operator's machine is set."""

    seconds: ClassVar[float]
    points = frozenset({PointKind.WRITE, PointKind.SETTLED})
    rank = 6

    async def before(self, run: Run, replica: Replica, operation: Operation) -> Answer | None:  # noqa: ARG002
        replica.jump(self.jump(replica))
        return None

    async def settled(self, run: Run) -> None:
        for replica in run.living():
            replica.jump(self.jump(replica))
            run.active()

    def jump(self, replica: Replica) -> float:  # noqa: ARG002
        """Return the seconds by which the clock is set."""
        return self.seconds


class ClockForward(_Clock):
    name = "clock-forward"
    seconds = _DAY


class ClockBack(_Clock):
    name = "clock-back"
    seconds = -_HOUR


class Midnight(_Clock):
    """The last moment of a day: midnight passes before the next step."""

    name = "midnight"

    def jump(self, replica: Replica) -> float:
        return _DAY - replica.wall() % _DAY - _LAST_MOMENT


async def _patch(run: Run, place: Place, change: dict[str, Any]) -> None:
    metadata = run.objects.metadata[place]
    client = run.client.in_namespace(metadata.namespace) if metadata.namespace else run.client
    with suppress(APIError):
        await client.patch(run.view(run.objects.kinds[place[0]]), metadata.name, MergePatch(change))


async def _release(run: Run, uid: str) -> None:
    place = run.objects.uids.get(uid)
    if place is not None:
        left = [each for each in run.objects.metadata[place].finalizers if each != HANGING]
        await _patch(run, place, {"metadata": {"finalizers": left}})


def _without_addresses(value: dict[str, Any]) -> dict[str, Any]:
    spec = value.get("spec")
    if isinstance(spec, dict):
        for field in ("clusterIP", "clusterIPs", "nodeName", "volumeName"):
            spec.pop(field, None)
    return value


KINDS = (EarlyStep, Touched, ChildDeleted, ChildChanged, FinalizerHangs, Bystander, ClockForward, ClockBack, Midnight)
