"""Logs of worlds: thousands of injected faults would fill the screen with what is expected."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Disable logging within the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
