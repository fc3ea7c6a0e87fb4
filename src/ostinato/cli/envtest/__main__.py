"""Process of an entry point: `python -m ostinato.cli.envtest PROGRAM FLAG...`."""

from __future__ import annotations

import gc
import sys

from ostinato.cli.error import CommandError


def main(program: str, arguments: list[str]) -> int:
    """Run `etcd` or `kube-apiserver` and return its exit code."""
    try:
        if program == "etcd":
            from ostinato.cli.envtest import etcd  # noqa: PLC0415 - each loads only what it needs

            etcd.run(arguments)
        else:
            gc.disable()  # until the server is ready, see `ostinato apiserver`
            from ostinato.cli.envtest import apiserver  # noqa: PLC0415

            apiserver.run(arguments)
    except CommandError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 1
    except KeyboardInterrupt:  # before the signal handlers are installed
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
