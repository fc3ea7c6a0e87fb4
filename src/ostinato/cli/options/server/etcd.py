"""Options of a store on etcd: `--store etcd://...`, or kube-apiserver's `--etcd-servers` and its companions."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Final

from ostinato.cli.error import CommandError

if TYPE_CHECKING:
    from ostinato.etcd import EtcdSettings

PASSWORD: Final = "OSTINATO_ETCD_PASSWORD"  # noqa: S105 - the name of the variable


def add_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--etcd-servers",
        metavar="URL[,URL...]",
        default="",
        help="etcd members that store the objects, http[s]://HOST:PORT each; as --store etcd://HOST:PORT,...",
    )
    group.add_argument(
        "--etcd-prefix", metavar="PATH", default="", help="prefix of all keys in etcd (default: /registry)"
    )
    group.add_argument(
        "--etcd-cafile",
        metavar="PEM",
        default="",
        help="certificate authority of the etcd members (default: those that the system trusts)",
    )
    group.add_argument("--etcd-certfile", metavar="PEM", default="", help="client certificate for etcd")
    group.add_argument("--etcd-keyfile", metavar="PEM", default="", help="private key of --etcd-certfile")


def settings(options: argparse.Namespace) -> EtcdSettings | None:
    """Return where etcd is; None if the objects are stored elsewhere. CommandError names the invalid option."""
    files = {name: getattr(options, f"etcd_{name}") for name in ("cafile", "certfile", "keyfile")}
    is_url = options.store.startswith("etcd:")
    if not is_url and not options.etcd_servers:
        for name, value in {**files, "prefix": options.etcd_prefix}.items():
            if value:
                raise CommandError(f"--etcd-{name} needs --store etcd://HOST:PORT or --etcd-servers")
        return None
    from ostinato.etcd import EtcdSettings  # noqa: PLC0415 - only with etcd

    if options.store and options.etcd_servers:
        raise CommandError("--store and --etcd-servers exclude each other; give one of them")
    try:
        if is_url:
            password = os.environ.get(PASSWORD, "")
            return EtcdSettings.parse(options.store, **files, prefix=options.etcd_prefix, password=password)
        return EtcdSettings.from_servers(options.etcd_servers, **files, prefix=options.etcd_prefix)
    except ValueError as error:
        raise CommandError(f"--store {error}" if is_url and str(error).startswith("etcd:") else str(error)) from None
