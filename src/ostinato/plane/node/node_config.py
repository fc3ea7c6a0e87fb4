"""Settings of a node that runs real containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ostinato.api.quantity import Quantity


class NodeConfig(msgspec.Struct, frozen=True):
    """
    - `directory`: root of the node's state: Pods' volumes, termination messages, static Pod manifests.
    - `logs`: directory of the containers' log files.
    - `addresses`: IP addresses of the node, one of each family.
    - `allocatable`: resources that Pods can use.
    - `api_server`: URL of the API server, for Pods on the network of the machine. Defaults to "": not known.
    """

    directory: Path
    logs: Path
    addresses: tuple[str, ...]
    allocatable: Mapping[str, Quantity]
    api_server: str = ""

    @property
    def address(self) -> str:
        return self.addresses[0]
