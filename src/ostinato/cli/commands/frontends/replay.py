"""`ostinato replay`: compare the answers of front ends with recorded ones."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load_all
from ostinato.cli.program.program import program_of
from ostinato.cli.program.recording import deciders_of
from ostinato.cli.program.targets import targets
from ostinato.frontends.kernel.recording import DIRECTORY, RecordingError, recordings, replayed
from ostinato.manager.hosting import Host


def replay(directory: str, files: Sequence[str], ignore: Sequence[str]) -> int:
    """Replay all recordings, print the differences, and return the exit code."""
    try:
        found = list(recordings(Path(directory)))
    except RecordingError as error:
        raise CommandError(str(error)) from None
    if not found:
        raise CommandError(f"{directory}: no recordings")
    os.environ.pop(DIRECTORY, None)  # a replay is not recorded
    host = Host()
    program = program_of(load_all([find(each) for each in targets(files)], host), host)
    deciders = deciders_of(program)
    unknown = sorted({each.request.controller for _, each in found} - set(deciders))
    if unknown:
        known = ", ".join(sorted(deciders)) or "none"
        raise CommandError(f"{directory}: recordings of {', '.join(unknown)}, and the program has {known}")
    failed = 0
    for path, recording in found:
        text = asyncio.run(replayed(recording, deciders[recording.request.controller], ignore=ignore))
        if text:
            failed += 1
            sys.stdout.write(f"{path}: differs\n{text}")
    sys.stdout.write(f"{len(found)} replayed, {failed} differ\n")
    return 1 if failed else 0
