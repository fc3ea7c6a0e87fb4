"""Copy the facts of the Kubernetes API into the package, in the form in which Ostinato reads them.

    python scripts/import_kubernetes.py DIRECTORY

DIRECTORY holds definitions.json, discovery.json, protobuf.json, tables.json and bootstrap.json of one Kubernetes
version. What the published definitions leave out, and server-side apply needs, is added here. Afterwards run
scripts/generate_kinds.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "ostinato"
DATA = PACKAGE / "api" / "data"
SERVER_DATA = PACKAGE / "server" / "data"

# Keys of list items that may be left out: an item without one is the same as an item with the default.
KEY_DEFAULTS = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
}


def main(source: Path) -> None:
    definitions = _read(source / "definitions.json")
    for (definition, field), default in KEY_DEFAULTS.items():
        definitions[definition]["properties"][field]["default"] = default
    _write("definitions.json", definitions)
    _write("discovery.json", _read(source / "discovery.json"))
    _write("protobuf.json", _read(source / "protobuf.json"))
    for name in ("tables.json", "bootstrap.json"):
        _write(name, _read(source / name), SERVER_DATA)


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _write(name: str, value: Any, directory: Path = DATA) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
