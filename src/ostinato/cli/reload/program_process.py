"""The process of a program under `--reload`: `python -m ostinato.cli.reload.program_process ATTACHMENT`.

It runs the program like `ostinato run`, on the cluster that the supervisor hosts. A thread reads the pipe of the
supervisor: at its end, the supervisor has ended, and so does this process, also while the program blocks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Final

import msgspec

from ostinato.world import World

_STOP: Final = 10.0  # seconds after SIGTERM, before SIGKILL


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `options`: of the command (`RunOptions`).
    - `pipe`: descriptor of the supervisor's pipe.
    - `kubeconfig`: of the embedded cluster that the supervisor hosts; None without one.
    """

    options: msgspec.Raw
    pipe: int
    kubeconfig: str | None = None


def main(argument: str) -> int:
    from ostinato.cli.commands.run import RunOptions, run  # noqa: PLC0415 - it imports the supervisor
    from ostinato.cli.error import CommandError  # noqa: PLC0415
    from ostinato.cli.parser import error_prefix  # noqa: PLC0415

    attachment = msgspec.json.decode(argument, type=Attachment)
    world = World.real()
    os.set_inheritable(attachment.pipe, False)  # noqa: FBT003
    world.executor.thread("supervisor pipe", lambda: _end_with(attachment.pipe, world))
    try:
        run(msgspec.json.decode(attachment.options, type=RunOptions), attached_to=attachment.kubeconfig)
    except CommandError as error:
        sys.stderr.write(f"{error_prefix('ostinato run', sys.stderr)} {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


async def _end_with(pipe: int, world: World) -> None:
    """Wait until the supervisor has ended, and end this process and its children."""
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe, closed.set)
    await closed.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await world.clock.sleep(_STOP)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
