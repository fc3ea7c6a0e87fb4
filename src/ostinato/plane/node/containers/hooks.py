"""Lifecycle hooks of containers: postStart and preStop."""

from __future__ import annotations

from typing import Final

from ostinato.kinds.core_v1 import Container, LifecycleHandler, Pod
from ostinato.plane.node.probes.prober import Prober
from ostinato.world import Clock

_USER_AGENT: Final = "kube-lifecycle/1.36"


class LifecycleHooks:
    def __init__(self, prober: Prober, clock: Clock) -> None:
        self._prober = prober
        self._clock = clock

    async def run(
        self,
        pod: Pod,
        container: Container,
        hook: LifecycleHandler,
        address: str,
        timeout: float | None,  # noqa: ASYNC109
    ) -> bool:
        """Run a hook and return whether it succeeded.

        An HTTP hook succeeds with any response, whatever its status code.
        """
        if hook.exec is not None:
            outcome = await self._prober.command(pod, container.name, hook.exec.command, timeout)
            return outcome.result == "success"
        if hook.http_get is not None:
            outcome = await self._prober.http(hook.http_get, container, address, timeout, _USER_AGENT)
            return outcome.result == "success" or "statuscode" in outcome.output
        if hook.sleep is not None:
            seconds = float(hook.sleep.seconds)
            await self._clock.sleep(seconds if timeout is None else min(seconds, timeout))
        return True
