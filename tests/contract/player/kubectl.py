"""The step `kubectl`, with its own kubeconfig and cache."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from tests.contract.player.paths import Json


class Kubectl:
    def __init__(self, binary: str, kubeconfig: Path, cache: Path) -> None:
        self._command = [binary, "--kubeconfig", str(kubeconfig)]
        self._environment = {**os.environ, "KUBECACHEDIR": str(cache)}

    async def run(self, arguments: Sequence[str], namespace: str, stdin: str, seconds: float) -> Json:
        """The output of the command, line by line, and its exit code."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            "--namespace",
            namespace,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )
        try:
            async with asyncio.timeout(seconds):
                printed = await process.communicate(stdin.encode())
        except TimeoutError:
            process.kill()
            await process.communicate()
            return {"timed out": list(arguments)}
        lines = [text.decode("utf-8", "replace").splitlines() for text in printed]
        shown = {name: found for name, found in zip(("stdout", "stderr"), lines, strict=True) if found}
        return {"code": process.returncode, **shown}
