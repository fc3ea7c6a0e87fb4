"""Parts of error messages in Go's formats."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.text.go_format import quote


def aggregated(messages: Iterable[str]) -> str:
    """Join distinct messages into one, as kube-apiserver's aggregate errors do."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(values: Iterable[str]) -> str:
    """Format a list as Go's `%q`."""
    return f"[{' '.join(map(quote, values))}]"
