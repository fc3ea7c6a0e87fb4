"""Process of an entry point: `python -m ostinato.cli.envtest PROGRAM FLAG...`."""

from __future__ import annotations

import gc
import signal
import sys

from ostinato.cli.envtest import flags
from ostinato.cli.envtest.parent import ParentWatch
from ostinato.cli.error import CommandError


def main(program: str, arguments: list[str]) -> int:
    """Run `etcd` or `kube-apiserver` and return its exit code."""
    # Python's own handler, which raises KeyboardInterrupt, can lose a SIGINT that arrives while asyncio replaces it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    watch = ParentWatch()
    try:
        if program == "etcd":
            from ostinato.cli.envtest import etcd_flags  # noqa: PLC0415 - each loads only what it needs

            options = flags.parse(etcd_flags.make_parser(), arguments)
            from ostinato.cli.envtest import etcd  # noqa: PLC0415 - not for --help

            etcd.run(options, watch)
        else:
            from ostinato.cli.envtest import apiserver_flags  # noqa: PLC0415

            options = flags.parse(apiserver_flags.make_parser(), arguments)
            gc.disable()  # until the server is ready, see `ostinato apiserver`
            from ostinato.cli.envtest import apiserver  # noqa: PLC0415 - not for --help

            apiserver.run(options, watch)
    except CommandError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
