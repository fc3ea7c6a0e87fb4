"""The commands and their options. What they do is in a module each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Kubernetes controllers in Python, and the control plane to run them against.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def ostinato() -> None:
    """Makes `ostinato` a group of commands, though there may be one alone."""


@app.command()
def apiserver(
    listen: Annotated[
        str, typer.Option(help="Where to listen, HOST:PORT; port 0 is any that is free.", metavar="HOST:PORT")
    ] = "127.0.0.1:6443",
    state: Annotated[
        Path | None,
        typer.Option(
            help="Directory for certificates, the store and admin.kubeconfig; made if it is not there. "
            "[default: ostinato in $XDG_STATE_HOME or ~/.local/state]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            help="Where objects are kept: sqlite:PATH or memory. [default: sqlite:store.db in the state directory]",
            metavar="sqlite:PATH|memory",
            show_default=False,
        ),
    ] = "",
    token_auth_file: Annotated[
        Path | None,
        typer.Option(help='CSV of bearer tokens: token,user,uid,"group1,group2".', metavar="CSV", show_default=False),
    ] = None,
) -> None:
    """Run an API server: bare, without controllers, scheduler or nodes."""
    from ostinato.cli import apiserver as command  # noqa: PLC0415 - `ostinato --help` loads no server

    try:
        settings = command.settings(listen, state, store, token_auth_file)
        command.run(settings)
    except command.Failure as error:
        typer.echo(f"ostinato apiserver: {error}", err=True)
        raise typer.Exit(1) from error
