"""Recordings of a program: where front ends write them, and the deciders that replay them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ostinato.cli.error import CommandError
from ostinato.cli.program.program import Program


@contextmanager
def recording_to(directory: str, *, secrets: bool) -> Iterator[None]:
    """Let front ends that are created in the block record. No effect without a directory."""
    if not directory:
        yield
        return
    from ostinato.frontends.kernel import recording  # noqa: PLC0415 - few programs need it

    path = Path(directory).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"--record {directory}: {error.strerror}") from None
    wanted = {recording.DIRECTORY: str(path), recording.SECRETS: "1" if secrets else ""}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def deciders_of(program: Program) -> dict[str, Any]:
    """Return the deciders of the front ends of a program, by the name of their controller."""
    front_ends = [each for each in program.runnables if hasattr(each, "deciders")]
    return {name: decider for each in front_ends for name, decider in each.deciders().items()}
