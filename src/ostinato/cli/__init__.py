"""The `ostinato` command. Each command imports its own modules when it is called."""


def main() -> None:
    import sys  # noqa: PLC0415 - importing ostinato.cli must not load a parser

    from ostinato.cli.app import run  # noqa: PLC0415

    sys.exit(run())
