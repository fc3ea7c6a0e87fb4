"""Image manager: pulls the images of containers by their pull policy.

A failed pull is retried after ten seconds, doubled each time up to five minutes; meanwhile the container waits with
ImagePullBackOff. Credentials are those of containerd's configuration.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.grpc import RpcError, go_error
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.images.reference import with_tag
from ostinato.plane.node.runtimes import EventRecorder, PullError
from ostinato.plane.node.runtimes.containerd.cri import Cri
from ostinato.world import Clock

_FIRST_BACKOFF: Final = 10.0
_MAX_BACKOFF: Final = 300.0
_SOON: Final = 2.0  # seconds for which ErrImagePull is shown before ImagePullBackOff
_PULL_TIMEOUT: Final = 3600.0  # images may be large; containerd aborts stalled pulls


class _Failure(msgspec.Struct):
    """A failed pull: message, back-off, and the time of the next try."""

    message: str
    wait: float
    due: float


class ImageManager:
    def __init__(self, cri: Cri, clock: Clock) -> None:
        self._cri = cri
        self._clock = clock
        self._failures: dict[tuple[str, str], _Failure] = {}  # by uid and image

    async def ensure(self, pod: Pod, asked: str, policy: str, record_event: EventRecorder) -> None:
        """Ensure that an image is available; `PullError` if it is not. `policy`: IfNotPresent if it is empty."""
        image = _checked(asked, record_event)
        if policy != "Always":
            if await self.find(image) is not None:
                message = f'Container image "{asked}" already present on machine and can be accessed by the pod'
                record_event("Normal", "Pulled", message)
                return
            if policy == "Never":
                message = f'Container image "{asked}" is not present with pull policy of Never'
                record_event("Warning", "ErrImageNeverPull", message)
                raise PullError("ErrImageNeverPull", message)
        await self._pull(pod, asked, image, record_event)

    async def find(self, image: str) -> dict[str, Any] | None:
        """Return the ImageStatus of an image; None if it is not present."""
        try:
            answer = await self._cri.call("ImageStatus", {"image": {"image": image}})
        except RpcError as error:
            raise PullError("ImageInspectError", f'Failed to inspect image "": {go_error(error)}') from None
        found: dict[str, Any] | None = answer.get("image")
        return found if found and found.get("id") else None

    def forget(self, uid: str) -> None:
        """Drop the back-off state of a removed Pod."""
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]

    async def _pull(self, pod: Pod, asked: str, image: str, record_event: EventRecorder) -> None:
        key = (pod.metadata.uid, asked)
        failure = self._failures.get(key)
        now = self._clock.monotonic()
        if failure is not None and now < failure.due:
            record_event("Normal", "BackOff", f'Back-off pulling image "{asked}"')
            message = f'Back-off pulling image "{asked}": {failure.message}'
            raise PullError("ImagePullBackOff", message, failure.due - now)
        record_event("Normal", "Pulling", f'Pulling image "{asked}"')
        try:
            await self._cri.call("PullImage", {"image": {"image": image}}, within=_PULL_TIMEOUT)
        except RpcError as error:
            why = go_error(error)
            record_event("Warning", "Failed", f'Failed to pull image "{asked}": {why}')
            wait = _FIRST_BACKOFF if failure is None else min(2 * failure.wait, _MAX_BACKOFF)
            self._failures[key] = _Failure(f"ErrImagePull: {why}", wait, self._clock.monotonic() + wait)
            raise PullError("ErrImagePull", why, _SOON) from None
        self._failures.pop(key, None)
        took = self._clock.monotonic() - now
        found = await self.find(image)
        size = 0 if found is None else found.get("size", 0)
        message = f'Successfully pulled image "{asked}" in {_took(took)} ({_took(took)} including waiting).'
        record_event("Normal", "Pulled", f"{message} Image size: {size} bytes.")


def _checked(asked: str, record_event: EventRecorder) -> str:
    try:
        return with_tag(asked)
    except ValueError as error:
        message = f'Failed to apply default image tag "{asked}": couldn\'t parse image name "{asked}": {error}'
        record_event("Warning", "InspectFailed", message)
        raise PullError("InvalidImageName", message) from None


def _took(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms" if seconds < 1 else f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
