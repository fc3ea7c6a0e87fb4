"""What tests of hooks share: hook files that record their binding contexts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ostinato.client.views import Unstructured

Json = dict[str, Any]

CONFIG_MAP = Unstructured.of("v1", "ConfigMap")
SECRET = Unstructured.of("v1", "Secret")
NAMESPACE = Unstructured.of("v1", "Namespace")


class HookDirectory:
    """A directory of bash hooks. Each copies its contexts, then runs its body; `$N` is the number of the run."""

    def __init__(self, root: Path) -> None:
        self.root = root / "hooks"
        self.records = root / "records"
        self.root.mkdir()
        self.records.mkdir()

    def add(self, name: str, config: str, body: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        own = self.records / name.replace("/", "_")
        own.mkdir(exist_ok=True)
        script = (
            f"#!/usr/bin/env bash\nif [[ $1 == --config ]]; then cat <<'EOF'\n{config}\nEOF\nexit 0\nfi\n"
            f"N=$(ls {own} | wc -l)\ncp $BINDING_CONTEXT_PATH {own}/$(printf %03d $N).json\n{body}\n"
        )
        path.write_text(script)
        path.chmod(0o755)
        return path

    def runs(self, name: str) -> list[list[Json]]:
        """Return the contexts of each run."""
        own = self.records / name.replace("/", "_")
        return [json.loads(each.read_text()) for each in sorted(own.iterdir())]

    def contexts(self, name: str) -> list[Json]:
        return [context for run in self.runs(name) for context in run]


def config_map(name: str, namespace: str = "default", labels: dict[str, str] | None = None, **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "data": data,
    }


def short(context: Json) -> str:
    """Describe a context: `cms Added a`, `cms Synchronization a,b`."""
    parts = [context["binding"], context.get("watchEvent") or context.get("type", "")]
    if "object" in context:
        parts.append(context["object"]["metadata"]["name"])
    if "objects" in context:
        parts.append(",".join(each["object"]["metadata"]["name"] for each in context["objects"]))
    return " ".join(part for part in parts if part)
