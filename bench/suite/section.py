"""One section in its own process: `python -m bench.suite.section NAME OUTPUT OPTIONS`. Used by `bench.suite.run`."""

from __future__ import annotations

import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import FrameType

import msgspec

from bench.peers import Missing
from bench.suite.context import Context, Options


def _end(_: int, __: FrameType | None) -> None:
    raise SystemExit("given up: it took too long")  # contenders are stopped on the way out


def main() -> None:
    name, output, options = sys.argv[1:]
    signal.signal(signal.SIGTERM, _end)
    with tempfile.TemporaryDirectory(prefix="ostinato-bench-") as temporary:
        context = Context(name, msgspec.json.decode(options, type=Options), Path(temporary), Path(output))
        try:
            import_module(f"bench.suite.sections.{name}").measure(context)
        except Missing as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
