"""Import data about the Kubernetes API into the package, in Ostinato's format.

    (cd scripts/go_facts && go run . > facts.json)
    (cd scripts/go_internal && go run . > internal.json)
    python scripts/import_kubernetes.py DIRECTORY scripts/go_facts/facts.json scripts/go_internal/internal.json

- DIRECTORY has definitions.json, discovery.json, protobuf.json, tables.json and bootstrap.json of one version.
- facts.json has data from its Go types, internal.json how its server formats values in messages.
- Adds what server-side apply needs and the published definitions omit. Run scripts/generate_kinds.py afterwards.
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


# Messages that JSON writes in a form of their own.
ODD_MESSAGES = (
    *(".Quantity", ".Time", ".MicroTime", ".Duration", ".IntOrString", ".TypeMeta"),
    *(".JSONSchemaPropsOrArray", ".JSONSchemaPropsOrBool", ".JSONSchemaPropsOrStringArray"),
)


def main(source: Path, facts: Any, internal: Any) -> None:
    definitions = _read(source / "definitions.json")
    for (definition, field), default in KEY_DEFAULTS.items():
        definitions[definition]["properties"][field]["default"] = default
    protobuf = _read(source / "protobuf.json")
    _write(DATA / "definitions.json", definitions)
    _write(DATA / "discovery.json", _read(source / "discovery.json"))
    _write(DATA / "protobuf.json", protobuf)
    _write(DATA / "protobuf_json.json", _protobuf_in_json(protobuf, facts["messages"]))
    _write(DATA / "zero_objects.json", facts["zeros"])
    _write(SERVER_DATA / "go_fields.json", _declared(definitions, facts["fields"]))
    _write(SERVER_DATA / "go_shown.json", _shown(definitions, internal))
    for name in ("tables.json", "bootstrap.json"):
        _write(SERVER_DATA / name, _read(source / name))


def _declared(definitions: Any, models: Any) -> Any:
    """Return the declaration of each field: its Go type, and whether it is omitted when empty or zero."""
    return {
        model: {name: [f["type"], int(f["omitEmpty"]), *([1] if f["omitZero"] else [])] for name, f in fields.items()}
        for model, fields in models.items()
        if definitions.get(model, {}).get("properties")
    }


def _shown(definitions: Any, models: Any) -> Any:
    """How messages show structs: of each field its name there, its own name, whether it goes when empty, what stands
    there if nothing does, and the model of what is in it.
    """
    return {
        _short(model): [[f["name"], f["field"], int(f["omit"]), _short(f["zero"]), _short(f["model"])] for f in fields]
        for model, fields in models.items()
        if model in definitions and not model.endswith("List") and "alpha" not in model and "beta" not in model
    }


def _short(model: str) -> str:
    return model.replace("io.k8s.api.", "").replace("io.k8s.apimachinery.pkg.apis.", "")


def _protobuf_in_json(protobuf: Any, messages: Any) -> Any:
    """Return the JSON names of each message's fields in the order of their numbers, where they differ."""
    modes: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {}
    for message, fields in messages.items():
        if message not in protobuf or message.endswith(ODD_MESSAGES) or any(f["mode"] == "x" for f in fields.values()):
            continue
        numbers = sorted(protobuf[message], key=int)
        modes[message] = "".join(fields[number]["mode"] for number in numbers)
        for number in numbers:
            name, mode = fields[number]["name"], fields[number]["mode"]
            if name != protobuf[message][number][0] and mode != "i":
                names.setdefault(message, {})[number] = name
    return {"modes": modes, "names": names}


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), _read(Path(sys.argv[2])), _read(Path(sys.argv[3])))
