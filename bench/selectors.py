"""Match selectors against labels. The reference is an equality check written in Python."""

from bench.timing import compare
from ostinato.api.selectors import fields, labels

LABELS = {"app": "web", "tier": "front", "pod-template-hash": "7d4b9c6f5"}


def main() -> None:
    equality = labels.parse("app=web,tier=front")
    sets = labels.parse("app in (web, api), tier notin (db), !legacy, pod-template-hash")
    by_node = fields.parse("spec.nodeName=node-17")
    values = {"metadata.name": "a", "spec.nodeName": "node-17"}
    compare(
        "Match a selector",
        "python ==",
        {
            "python ==": lambda: LABELS.get("app") == "web" and LABELS.get("tier") == "front",
            "equality": lambda: equality.matches(LABELS),
            "sets": lambda: sets.matches(LABELS),
            "fields": lambda: by_node.matches(values),
            "parse": lambda: labels.parse("app=web,tier=front"),
        },
    )
