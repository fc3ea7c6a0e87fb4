"""View of all objects for invariants: typed reads of the state of one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ostinato.client.views import view_of

if TYPE_CHECKING:
    from ostinato.testing.explore.world.run import Run

T = TypeVar("T")


class StateView:
    """`state.list(Pod)`, `state.get(Widget, "a")`; `state.external["s3"]` is the fake of an external system."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._collections = {gvk.group_kind: name for name, gvk in run.subject.image.kinds.items()}

    @property
    def external(self) -> dict[str, Any]:
        return self._run.fakes

    def list(self, kind: type[T], namespace: str = "") -> list[T]:
        """Return all objects of a kind. `namespace`: Defaults to all."""
        view: Any = view_of(kind)
        collection = self._collections.get(view.gvk.group_kind)
        found = []
        for (name, key), (_, data) in self._run.disk.objects.items():
            if name == collection and key.startswith(f"{namespace}/" if namespace else ""):
                gvk = view.gvk
                whole = {"apiVersion": gvk.api_version, "kind": gvk.kind, **msgspec.json.decode(data)}
                found.append(view.read(msgspec.json.encode(whole), view.info))
        return found

    def get(self, kind: type[T], name: str, namespace: str = "default") -> T | None:
        """Return an object, None if it does not exist."""
        found = [each for each in self.list(kind) if each.metadata.name == name]  # type: ignore[attr-defined]
        return next((each for each in found if each.metadata.namespace in ("", namespace)), None)  # type: ignore[attr-defined]
