"""Options that several commands share: the cluster, the state directory, the addresses of endpoints."""

from __future__ import annotations

import argparse


def add_kubeconfig(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file (default: kubectl's rules)")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current context)")


def add_state(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="state directory of the server (default: ostinato in $XDG_STATE_HOME or ~/.local/state)",
    )


def add_endpoints(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--health", metavar="[HOST]:PORT", default="", help="serve /healthz and /readyz on this address"
    )
    parser.add_argument("--metrics", metavar="[HOST]:PORT", default="", help="serve /metrics on this address")
    add_metrics_secure(parser)
    parser.add_argument(
        "--metrics-cert-path",
        metavar="DIR",
        default="",
        help="directory with tls.crt and tls.key for --metrics-secure, reloaded (default: self-signed)",
    )
    parser.add_argument(
        "--profiler",
        metavar="[HOST]:PORT",
        default="",
        help="serve a profiler (default host: loopback)",
    )


def add_metrics_secure(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--metrics-secure",
        action="store_true",
        help="serve metrics over TLS, to clients whose token is permitted to get the path",
    )
