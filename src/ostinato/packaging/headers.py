"""First lines of written files: they say who writes them, and by them stale files are found."""

from __future__ import annotations

from typing import Final

HEADER: Final = "# Written by `ostinato package`; changes are lost.\n"
TEMPLATE_HEADER: Final = "{{- /* Written by `ostinato package`; changes are lost. */ -}}\n"
KEPT: Final = "# Written once by `ostinato package`; yours to edit.\n"  # of files that are not written again
