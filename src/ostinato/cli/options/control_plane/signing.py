"""Options of the authority that signs CertificateSigningRequests, with kube-controller-manager's names."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ostinato.cli.error import CommandError

_CERTIFICATE: Final = "--cluster-signing-cert-file"
_KEY: Final = "--cluster-signing-key-file"


def add_to(parser: argparse._ActionsContainer) -> None:
    what = "of the authority that signs CertificateSigningRequests (default: the cluster's own)"
    parser.add_argument(_CERTIFICATE, metavar="PEM", help=f"certificate {what}")
    parser.add_argument(_KEY, metavar="PEM", help="private key of that authority")


def signing_of(options: argparse.Namespace) -> tuple[Path, Path] | None:
    """Return certificate and key; None for the cluster's own. CommandError if one is missing."""
    certificate, key = options.cluster_signing_cert_file, options.cluster_signing_key_file
    if not certificate and not key:
        return None
    if not certificate or not key:
        raise CommandError(f"{_CERTIFICATE} and {_KEY} need each other: give both")
    paths = Path(certificate).absolute(), Path(key).absolute()
    for path in paths:
        if not path.is_file():
            raise CommandError(f"{path}: no such file; give certificate and key of the signing authority")
    return paths
