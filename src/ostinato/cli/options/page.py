"""Options of the live page."""

from __future__ import annotations

import argparse


def add_page(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--page",
        metavar="[HOST]:PORT",
        default="",
        help="serve a live page of what happens and why, and print its URL (default host: loopback; port 0: any)",
    )
    parser.add_argument(
        "--page-writes", action="store_true", help="allow the page to delete objects and to open shells in containers"
    )
