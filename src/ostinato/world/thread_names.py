"""Names of the threads of this process, for profiles."""

from __future__ import annotations

import threading


def thread_names() -> dict[int, str]:
    """Return the names of the threads by their id."""
    return {each.ident: each.name for each in threading.enumerate() if each.ident is not None}


def current_thread_id() -> int:
    return threading.get_ident()
