"""Import the field numbers of gRPC services' messages into the package, in Ostinato's format.

    python scripts/import_grpc.py cri API_PROTO
    python scripts/import_grpc.py csi CSI_PROTO REGISTRATION_PROTO

API_PROTO is `pkg/apis/runtime/v1/api.proto` of the module k8s.io/cri-api. CSI_PROTO is `csi.proto` of the module
github.com/container-storage-interface/spec, and REGISTRATION_PROTO `pkg/apis/pluginregistration/v1/api.proto` of
k8s.io/kubelet. Imports the messages of the methods that Ostinato calls, without Windows' messages.
"""

import json
import re
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "src" / "ostinato" / "api" / "data"

METHODS = {
    "cri": (
        *("Version", "Status", "GetContainerEvents"),
        *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox"),
        *("CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ContainerStatus", "ListContainers"),
        *("ReopenContainerLog", "UpdateContainerResources", "ListContainerStats"),
        *("ExecSync", "Exec", "Attach", "PortForward"),
        *("ImageStatus", "PullImage"),
    ),
    "csi": (
        *("GetInfo", "NotifyRegistrationStatus"),
        *("GetPluginInfo", "GetPluginCapabilities", "Probe"),
        *("CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume"),
        *("ControllerExpandVolume", "ControllerGetCapabilities"),
        *("NodeGetInfo", "NodeGetCapabilities", "NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume"),
        *("NodeUnpublishVolume", "NodeExpandVolume", "NodeGetVolumeStats"),
    ),
}

Messages = dict[str, dict[str, list[str]]]  # by name: number to name, type and label

_SCALARS = {"uint32": "int64", "uint64": "int64"}  # varints alike
_WELL_KNOWN: Messages = {"google.protobuf.BoolValue": {"1": ["value", "bool", "optional"]}}
_TOKEN = re.compile(
    r"(?P<open>(?P<what>message|enum|oneof|service|extend)\s+(?P<named>[\w.]+)\s*\{)"
    r"|(?P<rpc>rpc\s+(?P<method>\w+)\s*\(\s*(?P<asks>\w+)\s*\)\s*returns\s*"
    r"\(\s*(?:stream\s+)?(?P<answers>\w+)\s*\)\s*\{)"
    r"|(?P<close>\})"
    r"|(?P<label>repeated\s+|optional\s+)?(?P<type>map\s*<\s*string\s*,\s*[\w.]+\s*>|[\w.]+)\s+(?P<name>\w+)\s*=\s*"
    r"(?P<number>\d+)"
)


def main(service: str, protos: list[str]) -> None:
    messages: Messages = {}
    enums: set[str] = set()
    methods: dict[str, tuple[str, str]] = {}
    for proto in protos:
        package = re.search(r"^package\s+([\w.]+)", proto, re.MULTILINE)
        assert package is not None
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", proto, flags=re.DOTALL)
        _parse(text, package[1], messages, enums, methods)
    prefix = next(iter(messages)).rpartition(".")[0]
    for name, fields in _WELL_KNOWN.items():
        messages[f"{prefix}.{name}"] = fields
    wanted = [message for method in METHODS[service] for message in methods[method]]
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
            found = _resolved(inner, message, messages.keys() | enums)
            if found in messages:
                wanted.append(found)
            written = "int32" if found in enums else found or _SCALARS.get(inner, inner)
            kept[message][number] = [name, kind.replace(inner, written) if kind.startswith("map") else written, label]
    (DATA / f"{service}.json").write_text(json.dumps(kept, sort_keys=True, separators=(",", ":")) + "\n")


def _resolved(kind: str, message: str, known: set[str]) -> str:
    """Return the full name of a type that a field of `message` has; "" for a scalar."""
    scope = message
    while scope:
        if f"{scope}.{kind.lstrip('.')}" in known:
            return f"{scope}.{kind.lstrip('.')}"
        scope = scope.rpartition(".")[0]
    return ""


def _parse(proto: str, package: str, messages: Messages, enums: set[str], methods: dict[str, tuple[str, str]]) -> None:
    around: list[tuple[str, str]] = []  # what we are in: its sort and full name
    for token in _TOKEN.finditer(proto):
        outer = next((name for what, name in reversed(around) if what == "message"), "")
        if token["open"]:
            name = f"{outer or package}.{token['named']}"
            around.append((token["what"], name))
            if token["what"] == "message":
                messages[name] = {}
            elif token["what"] == "enum":
                enums.add(name)
        elif token["close"]:
            around.pop()
        elif token["rpc"]:
            methods[token["method"]] = (f"{package}.{token['asks']}", f"{package}.{token['answers']}")
            around.append(("rpc", ""))
        elif outer and around[-1][0] not in ("enum", "extend"):
            label = "repeated" if (token["label"] or "").strip() == "repeated" else "optional"
            messages[outer][token["number"]] = [token["name"], re.sub(r"\s", "", token["type"]), label]


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in METHODS:
        sys.exit(__doc__)
    main(sys.argv[1], [Path(each).read_text() for each in sys.argv[2:]])
