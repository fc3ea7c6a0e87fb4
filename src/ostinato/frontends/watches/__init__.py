"""`watches.yaml` of operator-sdk, and what its Helm and Ansible operators have in common."""

from __future__ import annotations

from ostinato.frontends.watches.file import WatchesError, WatchOptions, load_watches

__all__ = ["WatchOptions", "WatchesError", "load_watches"]
