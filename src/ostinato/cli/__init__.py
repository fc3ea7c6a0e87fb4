"""The `ostinato` command. Each command loads what it needs, and only that, when it is called."""


def main() -> None:
    from ostinato.cli.app import app  # noqa: PLC0415 - importing ostinato.cli must not load a command line

    app()
