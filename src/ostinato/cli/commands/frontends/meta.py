"""`ostinato meta`: run CompositeControllers and DecoratorControllers of files or of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.api.selectors.labels import SelectorError
from ostinato.cli.commands.run import RunOptions, run_front_end
from ostinato.cli.error import CommandError
from ostinato.frontends.composite.meta.controllers import MetaSettings
from ostinato.frontends.composite.meta.files import DefinitionError, read_definitions
from ostinato.frontends.composite.meta.following import MetaControllers


class MetaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato meta --help`."""

    follow: bool = False
    target_label_selector: str = ""
    resolve: Sequence[str] = ()
    workers: int = 5
    skip_crds: bool = False


def meta(options: MetaOptions, run: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT. `run`: the arguments that it has in common with `ostinato run`."""
    common = RunOptions(**run)
    if options.workers < 1:
        raise CommandError(f"--workers {options.workers}: at least 1 is needed")
    settings = MetaSettings(workers=options.workers, resolve=_resolve(options.resolve))
    try:
        files = read_definitions(common.files)
    except DefinitionError as error:
        raise CommandError(str(error)) from None

    def make() -> list[Any]:
        try:
            controllers = MetaControllers(
                files,
                follow=options.follow or None,
                selector=options.target_label_selector,
                install=not options.skip_crds,
                settings=settings,
            )
        except SelectorError as error:
            raise CommandError(f"--target-label-selector: {error}") from None
        return [controllers]

    run_front_end(common, make)


def _resolve(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        host, equals, address = each.partition("=")
        if not equals or not host or not address:
            raise CommandError(f"--resolve {each}: use HOST[:PORT]=ADDRESS[:PORT]")
        found[host] = address
    return found
