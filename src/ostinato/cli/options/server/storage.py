"""Options of the store: where objects are, and how they are kept there."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import etcd as etcd_options
from ostinato.cli.options.server.values import seconds

if TYPE_CHECKING:
    from ostinato.server.store.etcd.options import EtcdOptions

_MEDIA_TYPES: Final = ("application/vnd.kubernetes.protobuf", "application/json")


def add_to(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--state",
        metavar="DIR",
        help="directory for certificates, the store and admin.kubeconfig, created if missing "
        "(default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
    )
    group.add_argument(
        "--store",
        metavar="sqlite:PATH|memory|etcd://HOST:PORT,...",
        default="",
        help="where objects are stored; an etcd may be shared with other servers, also with kube-apiserver "
        "(default: sqlite:store.db in the state directory)",
    )
    group.add_argument(
        "--accept-data-loss",
        action="store_true",
        help="if the store is damaged, set its files aside and start with the objects that can be read",
    )
    etcd_options.add_to(group)
    group.add_argument(
        "--storage-media-type",
        metavar="TYPE",
        default=_MEDIA_TYPES[0],
        help="media type of built-in kinds in etcd: "
        + " or ".join(_MEDIA_TYPES)
        + "; both are read (default: %(default)s)",
    )
    group.add_argument(
        "--etcd-compaction-interval",
        metavar="DURATION",
        default="5m",
        help="interval in which one of the servers drops etcd's old history; 0: never (default: %(default)s)",
    )
    group.add_argument(
        "--event-ttl", metavar="DURATION", default="1h", help="how long Events are kept (default: %(default)s)"
    )


def use_state(options: argparse.Namespace, state: Path) -> None:
    """Set all options of this module: the store is that of a state directory, the others have their defaults."""
    parser = argparse.ArgumentParser()
    add_to(parser.add_argument_group())
    vars(options).update(vars(parser.parse_args(["--state", str(state)])))


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the server's settings; CommandError names the invalid option."""
    etcd = etcd_options.settings(options)
    return {
        "state": state(options),
        "store": "" if etcd is not None else _store(options),
        "accept_data_loss": options.accept_data_loss,
        "etcd": etcd,
        "etcd_options": _etcd_options(options),
    }


def state(options: argparse.Namespace) -> Path:
    """Return the state directory."""
    return Path(options.state) if options.state else default_state()


def default_state() -> Path:
    """Return the default state directory."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "ostinato"


def _store(options: argparse.Namespace) -> str:
    store: str = options.store
    if store not in ("", "memory") and not store.startswith("sqlite:"):
        raise CommandError(f"--store {store}: want sqlite:PATH, memory or etcd://HOST:PORT")
    if store == "sqlite:":
        raise CommandError("--store sqlite: has no path; want sqlite:PATH")
    return store


def _etcd_options(options: argparse.Namespace) -> EtcdOptions:
    from ostinato.server.store.etcd.options import EtcdOptions  # noqa: PLC0415 - `ostinato --help` does not load it

    media_type: str = options.storage_media_type
    if media_type not in _MEDIA_TYPES:
        raise CommandError(f"--storage-media-type {media_type}: want {' or '.join(_MEDIA_TYPES)}")
    interval = seconds("--etcd-compaction-interval", options.etcd_compaction_interval)
    ttl = seconds("--event-ttl", options.event_ttl)
    if interval < 0:
        raise CommandError(f"--etcd-compaction-interval {options.etcd_compaction_interval}: want 0 or more")
    if ttl < 1:
        raise CommandError(f"--event-ttl {options.event_ttl}: want at least 1s")
    return EtcdOptions(media_type=media_type, event_ttl=ttl, compaction_interval=interval)
