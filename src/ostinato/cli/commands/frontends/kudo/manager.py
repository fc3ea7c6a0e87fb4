"""`ostinato kudo manager`: run the plans of instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostinato.cli.commands.run import RunOptions, run_front_end
from ostinato.cli.error import CommandError
from ostinato.frontends.plans import PackageError, PlanController, package_kind


class ManagerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato kudo manager --help`."""

    repair_drift: bool = False
    packages: Sequence[str] = ()
    group: str = ""


def manager(options: ManagerCommand, run: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT. `run`: the arguments that it has in common with `ostinato run`."""
    common = RunOptions(files=["kudo"], **run)
    run_front_end(common, lambda: _front_ends(options))


def _front_ends(options: ManagerCommand) -> list[PlanController]:
    found = [PlanController(repair_drift=options.repair_drift or None)]
    for each in options.packages:
        kind, equals, path = each.partition("=")
        if not equals:
            raise CommandError(f"--kind {each}: write KIND=PACKAGE, such as Kafka=./kafka")
        try:
            subject = package_kind(Path(path), kind=kind, group=options.group)
        except (PackageError, ValueError) as error:
            raise CommandError(f"--kind {each}: {error}") from None
        found.append(PlanController(subject, name=f"plans-{kind.lower()}"))
    return found
