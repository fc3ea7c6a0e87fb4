"""`ostinato snapshot`: save, restore and check the objects of an API server."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import etcd as etcd_options
from ostinato.cli.options.server.storage import default_state
from ostinato.cli.progress import blocking_progress
from ostinato.server.state import StateDirectory, StateError
from ostinato.server.store.records import UnusableStore
from ostinato.server.store.sqlite import snapshot
from ostinato.world import World


def run(options: argparse.Namespace) -> None:
    """Run the subcommand; CommandError if the store or the snapshot cannot be used."""
    command, what = {
        "save": (_save, "saving the objects"),
        "restore": (_restore, "restoring the objects"),
        "status": (_status, "checking the objects"),
    }[options.action]
    etcd = etcd_options.settings(options)
    try:
        with blocking_progress(what, World.real()):
            if etcd is None:
                command(options)
            else:
                from ostinato.cli.commands.control_plane import etcd_snapshot  # noqa: PLC0415 - only with etcd

                etcd_snapshot.run(options, etcd)
    except (StateError, UnusableStore) as error:
        raise CommandError(str(error)) from error


def _save(options: argparse.Namespace) -> None:
    saved = snapshot.save(_store(options), Path(options.file), World.real().ids)
    _print(f"saved {saved.objects} objects at resourceVersion {saved.version} to {saved.path} ({size(saved.size)})")


def _restore(options: argparse.Namespace) -> None:
    store = _store(options)
    with ExitStack() as held:
        if not options.store:  # a store outside the state directory has only its own lock
            held.callback(StateDirectory(_state(options)).release)
        restored, kept = snapshot.restore(Path(options.file), store, World.real().ids)
    _print(f"restored {restored.objects} objects to {restored.path}; resourceVersions continue from {restored.version}")
    if kept is not None:
        _print(f"previous files kept as {kept}*")


def _status(options: argparse.Namespace) -> None:
    if options.file and _is_of_etcd(Path(options.file)):
        from ostinato.cli.commands.control_plane import etcd_snapshot  # noqa: PLC0415 - only with etcd

        etcd_snapshot.print_snapshot_status(Path(options.file))
        return
    found = snapshot.snapshot_status(Path(options.file)) if options.file else snapshot.status(_store(options))
    _print(f"path:                 {found.path}{' (in use by a server)' if found.in_use else ''}")
    _print(f"format:               {found.format}")
    _print(f"objects:              {found.objects}")
    _print(f"last resourceVersion: {found.version}")
    _print(f"size:                 {size(found.size)}")
    _print("integrity:            ok")


def _state(options: argparse.Namespace) -> Path:
    return Path(options.state) if options.state else default_state()


def _store(options: argparse.Namespace) -> Path:
    store: str = options.store
    if not store:
        return _state(options) / "store.db"
    if not store.removeprefix("sqlite:") or not store.startswith("sqlite:"):
        raise CommandError(f"--store {store}: want sqlite:PATH or etcd://HOST:PORT; other stores have no snapshots")
    return Path(store.removeprefix("sqlite:"))


def _is_of_etcd(file: Path) -> bool:
    """Whether a snapshot is one of etcd: a page whose header begins with its number, 0, and "meta"."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(10) == bytes(8) + b"\x04\0"


def size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
