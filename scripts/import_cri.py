"""Import the field numbers of the CRI's messages into the package, in Ostinato's format.

    python scripts/import_cri.py API_PROTO

API_PROTO is `pkg/apis/runtime/v1/api.proto` of the module k8s.io/cri-api. Imports the messages of the methods that the
containerd runtime calls, without Windows' messages.
"""

import json
import re
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "src" / "ostinato" / "api" / "data" / "cri.json"

METHODS = (
    *("Version", "Status", "GetContainerEvents"),
    *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox"),
    *("CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "ListContainers"),
    *("ReopenContainerLog", "UpdateContainerResources", "ListContainerStats"),
    *("ExecSync", "Exec", "Attach", "PortForward"),
    *("ImageStatus", "PullImage"),
)

Messages = dict[str, dict[str, list[str]]]  # by name: number to name, type and label

_SCALARS = {"uint32": "int64", "uint64": "int64"}  # varints alike
_TOKEN = re.compile(
    r"(?P<open>(?P<what>message|enum|oneof|service)\s+(?P<named>\w+)\s*\{)"
    r"|(?P<close>\})"
    r"|(?P<rpc>rpc\s+(?P<method>\w+)\s*\((?P<asks>\w+)\)\s*returns\s*\((?:stream\s+)?(?P<answers>\w+)\)\s*\{\})"
    r"|(?P<label>repeated\s+|optional\s+)?(?P<type>map\s*<\s*string\s*,\s*\w+\s*>|[\w.]+)\s+(?P<name>\w+)\s*=\s*(?P<number>\d+)"
)


def main(proto: str) -> None:
    messages, enums, methods = _parse(re.sub(r"//[^\n]*|/\*.*?\*/", "", proto, flags=re.DOTALL))
    wanted = [message for method in METHODS for message in methods[method]]
    kept: Messages = {}
    while wanted:
        message = wanted.pop()
        if message in kept:
            continue
        kept[message] = {}
        for number, (name, kind, label) in messages[message].items():
            inner = kind.removeprefix("map<string,").removesuffix(">")
            if inner.startswith("Windows"):
                continue
            if inner in messages:
                wanted.append(inner)
            known = "int32" if inner in enums else _SCALARS.get(inner, inner)
            written = f"runtime.v1.{known}" if known in messages else known
            kept[message][number] = [name, kind.replace(inner, written) if kind.startswith("map") else written, label]
    named = {f"runtime.v1.{message}": fields for message, fields in kept.items()}
    DATA.write_text(json.dumps(named, sort_keys=True, separators=(",", ":")) + "\n")


def _parse(proto: str) -> tuple[Messages, set[str], dict[str, tuple[str, str]]]:
    messages: Messages = {}
    enums: set[str] = set()
    methods: dict[str, tuple[str, str]] = {}
    around: list[tuple[str, str]] = []  # what we are in: its sort and name
    for token in _TOKEN.finditer(proto):
        if token["open"]:
            around.append((token["what"], token["named"]))
            if token["what"] == "message":
                messages[token["named"]] = {}
            elif token["what"] == "enum":
                enums.add(token["named"])
        elif token["close"]:
            around.pop()
        elif token["rpc"]:
            methods[token["method"]] = (token["asks"], token["answers"])
        else:
            message = next((name for what, name in reversed(around) if what == "message"), "")
            if message and around[-1][0] != "enum":
                label = "repeated" if (token["label"] or "").strip() == "repeated" else "optional"
                messages[message][token["number"]] = [token["name"], re.sub(r"\s", "", token["type"]), label]
    return messages, enums, methods


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).read_text())
