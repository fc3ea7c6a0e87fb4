"""The `ostinato` command. Each command loads what it needs, and only that, when it is called."""


def main() -> None:
    import sys  # noqa: PLC0415 - importing ostinato.cli must not load a command line

    from ostinato.cli.app import run  # noqa: PLC0415

    sys.exit(run())
