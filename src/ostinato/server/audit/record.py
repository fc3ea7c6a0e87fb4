"""One request, as it is audited."""

from __future__ import annotations


class AuditRecord:
    """What is collected of a request while it is served."""

    def __init__(self) -> None:
        self.annotations: dict[str, str] = {}

    def annotate(self, key: str, value: str) -> None:
        self.annotations.setdefault(key, value)
