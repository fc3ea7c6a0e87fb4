"""Node selectors in annotations and configurations: parse `key=value,key=value`."""

from __future__ import annotations

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names


def label_map(selector: str) -> dict[str, str]:
    """The labels of a selector; ValueError with kube-apiserver's message if it is malformed."""
    labels: dict[str, str] = {}
    for part in selector.split(",") if selector else ():
        sides = part.split("=")
        if len(sides) != 2:
            raise ValueError(f"invalid selector: [{' '.join(sides)}]")
        key, value = (side.strip() for side in sides)
        wrong = names.is_qualified_name(key)
        if wrong:
            raise ValueError(f"<nil>: Invalid value: {quote(key)}: {'; '.join(wrong)}")
        wrong = names.is_label_value(value)
        if wrong:
            raise ValueError(f"[{key}]: Invalid value: {quote(value)}: {'; '.join(wrong)}")
        labels[key] = value
    return labels
