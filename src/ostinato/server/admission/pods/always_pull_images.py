"""AlwaysPullImages: sets imagePullPolicy Always, so that private images always need credentials.

Updates without a new image and the subresource `ephemeralcontainers` are not changed, as in kube-apiserver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ostinato.api.errors import Unknown
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.core.pods.spec.defaults import containers_of
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ostinato.server.request.context import Context

_POLICY = "Always"
_KINDS = ("initContainers", "containers", "ephemeralContainers")


class AlwaysPullImages(Plugin):
    covers = resources("pods")

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if not _applies(context, operation, obj, old):
            return
        assert obj is not None
        for container in containers_of(obj["spec"], *_KINDS):
            container["imagePullPolicy"] = _POLICY
        for volume in obj["spec"].get("volumes", ()):
            if "image" in volume:
                volume["image"]["pullPolicy"] = _POLICY

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        if not _applies(context, operation, obj, old):
            return
        assert obj is not None
        refusals = [str(forbidden(context, obj, fault)) for fault in _faults(obj["spec"])]
        if refusals:
            raise Unknown.of(refusals[0] if len(refusals) == 1 else f"[{', '.join(refusals)}]")


def _applies(context: Context, operation: str, obj: Json | None, old: Json | None) -> bool:
    if operation not in ("CREATE", "UPDATE") or not is_of(context, "", "pods"):
        return False
    assert obj is not None
    return old is None or not _images(obj) <= _images(old)


def _images(pod: Json) -> set[str]:
    return {container.get("image", "") for container in containers_of(pod["spec"], *_KINDS)}


def _faults(spec: Json) -> Iterator[FieldError]:
    for kind in _KINDS:
        for i, container in enumerate(spec.get(kind) or ()):
            policy = container.get("imagePullPolicy", "")
            if policy != _POLICY:
                yield FieldError.not_supported(Path("spec", kind).index(i).child("imagePullPolicy"), policy, [_POLICY])
    for i, volume in enumerate(spec.get("volumes", ())):
        policy = volume["image"].get("pullPolicy", "") if "image" in volume else _POLICY
        if policy != _POLICY:
            where = Path("spec", "volumes").index(i).child("image", "pullPolicy")
            yield FieldError.not_supported(where, policy, [_POLICY])
