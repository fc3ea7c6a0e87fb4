"""`ostinato watches`: run the charts, roles and playbooks of a watches.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api.time import Duration, TimeError
from ostinato.api.wire import DecodeError
from ostinato.api.wire.yaml import decode_yaml_documents
from ostinato.cli.commands.run import RunOptions, run_front_end
from ostinato.cli.error import CommandError
from ostinato.frontends.roles.inputs import ArtifactsError, private_directory
from ostinato.frontends.roles.runner import AnsibleMissing, AnsibleRunner
from ostinato.frontends.watches import WatchesError, WatchOptions, load_watches

Json = dict[str, Any]


class WatchesCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the command; see `ostinato watches --help`."""

    file: str = "watches.yaml"
    crds: Sequence[str] = ()
    artifacts: str | None = None
    workers: int = 0
    reconcile_period: str = ""
    ansible_verbosity: int = 2


def watches(options: WatchesCommand, run: Mapping[str, Any]) -> None:
    """Run until SIGTERM or SIGINT. `run`: the arguments that it has in common with `ostinato run`."""
    common = RunOptions(files=[options.file], **run)
    controllers = _loaded(options)
    installs = common.install_crds or bool(options.crds)
    run_front_end(msgspec.structs.replace(common, install_crds=installs), lambda: controllers)


def _loaded(options: WatchesCommand) -> list[Any]:
    try:
        artifacts = None if options.artifacts is None else private_directory(Path(options.artifacts))
        period = Duration.parse(options.reconcile_period).seconds if options.reconcile_period else None
        chosen = WatchOptions(
            artifacts=artifacts,
            workers=options.workers,
            reconcile_period=period,
            verbosity=min(max(options.ansible_verbosity, 0), 7),
            definitions=tuple(each for path in options.crds for each in _definitions(Path(path))),
        )
        found = load_watches(options.file, chosen)
        if any(hasattr(each, "role_options") for each in found):
            AnsibleRunner.check()
    except TimeError as error:
        raise CommandError(f"--reconcile-period: {error}; write a duration such as 30s or 1h") from None
    except ArtifactsError as error:
        raise CommandError(f"--artifacts: {error}") from None
    except (WatchesError, AnsibleMissing) as error:
        raise CommandError(str(error)) from None
    except ModuleNotFoundError as error:
        raise CommandError(f"charts need pip install 'ostinato[charts]' ({error})") from None
    return list(found)


def _definitions(path: Path) -> list[Json]:
    """Return the CustomResourceDefinitions of a file, or of the files of a directory."""
    files = (
        sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml", ".json"))
        if path.is_dir()
        else [path]
    )
    found: list[Json] = []
    for each in files:
        try:
            documents = decode_yaml_documents(each.read_bytes())
        except (OSError, DecodeError) as error:
            raise CommandError(f"--crds: {each}: {error}") from None
        found += [one for one in documents if isinstance(one, dict) and one.get("kind") == "CustomResourceDefinition"]
    if not found:
        raise CommandError(f"--crds {path}: no CustomResourceDefinition found")
    return found
