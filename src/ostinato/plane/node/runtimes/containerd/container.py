"""A container of the CRI: its status and exit."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ostinato.api.time import Time
from ostinato.grpc import Code, RpcError
from ostinato.kinds.core_v1 import ContainerUser, LinuxContainerUser
from ostinato.plane.node.runtimes import Exit
from ostinato.plane.node.runtimes.containerd.cri import CALL_TIMEOUT, Cri, Message
from ostinato.world import Clock

SCHEME: Final = "containerd://"
CREATED, RUNNING, EXITED, UNKNOWN = range(4)
_KILLED: Final = 137
_RETRY: Final = 1.0  # seconds until StopContainer is retried


class CriContainer:
    def __init__(self, cri: Cri, status: Message, clock: Clock) -> None:
        self.key: str = status["id"]  # id without the scheme
        self.id = SCHEME + self.key
        self.image: str = (status.get("image") or {}).get("image", "")
        self.image_id: str = status.get("image_ref", "")
        self.attempt: int = (status.get("metadata") or {}).get("attempt", 0)
        self.started_at = time_of(status.get("started_at", 0))
        self.user = _user(status)
        self.log = Path(status["log_path"]) if status.get("log_path") else None
        self.exit: Exit | None = None
        self._cri = cri
        self._clock = clock
        self.update(status)

    @property
    def ready(self) -> bool:
        return self.exit is None

    def update(self, status: Message | None) -> bool:
        """Apply a status (None: not found); return whether the container has ended since."""
        if self.exit is not None or (status is not None and status.get("state", CREATED) in (CREATED, RUNNING)):
            return False
        if status is None or status.get("state") == UNKNOWN:
            message = "The container could not be located when the pod was terminated"
            self.exit = Exit(
                code=_KILLED, at=Time.of(self._clock.now()), reason="ContainerStatusUnknown", message=message
            )
        else:
            self.exit = Exit(
                code=status.get("exit_code", 0),
                at=max(time_of(status.get("finished_at", 0)), self.started_at),  # containerd may record the start later
                reason=status.get("reason", ""),
                message=status.get("message", ""),
            )
        return True

    async def refresh(self) -> bool:
        """Query the status; return whether the container has ended since."""
        if self.exit is not None:
            return False
        try:
            answer = await self._cri.call("ContainerStatus", {"container_id": self.key})
        except RpcError as error:
            if error.code != Code.NOT_FOUND:
                return False  # status unknown for now
            return self.update(None)
        return self.update(answer.get("status", {}))

    async def stop(self, grace: float) -> None:
        while self.exit is None:
            request = {"container_id": self.key, "timeout": math.ceil(grace)}
            try:
                await self._cri.call("StopContainer", request, within=grace + CALL_TIMEOUT)
            except RpcError as error:
                if error.code == Code.NOT_FOUND:
                    self.update(None)
                    return
                await self._clock.sleep(_RETRY)
            await self.refresh()


def time_of(nanoseconds: int) -> Time:
    return Time.of(datetime.fromtimestamp(nanoseconds / 1e9, UTC))


def _user(status: Message) -> ContainerUser | None:
    linux: dict[str, Any] | None = (status.get("user") or {}).get("linux")
    if linux is None:
        return None
    groups = linux.get("supplemental_groups", [])
    return ContainerUser(
        linux=LinuxContainerUser(uid=linux.get("uid", 0), gid=linux.get("gid", 0), supplemental_groups=groups)
    )
