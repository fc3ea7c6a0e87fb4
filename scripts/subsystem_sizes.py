"""Print the lines of each hand-written subsystem, for the table in docs/dev/dependencies.md.

python scripts/subsystem_sizes.py
"""

from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "ostinato"

SUBSYSTEMS: dict[str, Sequence[str]] = {
    "HTTP/1.1: messages, streams, small server": ["http/[!w]*.py"],
    "HTTP/1.1: client (pool, TLS, proxies, retries)": ["client/http/[!w]*.py"],
    "HTTP/1.1: server (listener, connections, flow control)": ["server/http/*.py"],
    "WebSocket": ["http/websocket.py", "client/http/websocket.py"],
    "SPDY/3.1": ["streams/spdy*.py"],
    "gRPC client with HTTP/2": ["grpc/*.py"],
    "etcd client": ["etcd/*.py"],
    "protobuf": ["api/protobuf/*.py", "plane/node/runtimes/containerd/cri.py"],
    "CEL": ["cel/**/*.py"],
    "metrics": ["metrics/*.py"],
    "cron schedules": ["api/text/cron.py"],
    "JSONPath": ["api/text/json_path.py"],
    "JSON patch, merge patch": ["api/patch/json_patch.py", "api/patch/merge_patch.py"],
    "strategic merge patch": ["api/patch/strategic*.py", "api/patch/merge_order.py"],
    "server-side apply": ["api/apply/**/*.py"],
    "structural schemas": ["server/schema/structural/*.py", "server/schema/validation/*.py"],
    "label and field selectors": ["api/selectors/*.py"],
    "quantities": ["api/quantity.py"],
    "YAML input and output, on PyYAML": ["api/wire/yaml*.py"],
    "Go's text formats": ["api/text/go_format.py"],
    "functions of sprig and Helm": ["gotemplate/library/**/*.py"],
    "Helm charts": ["charts/*.py", "charts/load/*.py", "charts/values/*.py"],
    "JSON Schema of chart values": ["charts/schema/*.py"],
    "JSON web tokens": ["server/access/authentication/tokens/jwt.py"],
    "client certificates, OpenSSL by ctypes": ["server/http/client_certificates.py"],
    "SQLite write-ahead log": ["server/store/sqlite/wal.py"],
    "seccomp filters in BPF": ["plane/node/runtimes/process/seccomp.py"],
    "DNS messages": ["plane/network/dns/wire.py"],
    "netlink and nftables": [f"plane/network/{name}.py" for name in ("messages", "netlink", "nf_messages", "nftables")],
    "namespaces, mounts, by ctypes": [
        "plane/network/namespaces.py",
        "plane/node/runtimes/process/shim/kernel.py",
        "plane/node/volumes/subpath*.py",
    ],
    "work queue": ["queue/*.py"],
    "simulated time": ["world/simulated/*.py"],
}


def lines_of(patterns: Sequence[str]) -> int:
    """Count the lines of the files that match. Raises FileNotFoundError if none matches a pattern."""
    total = 0
    for pattern in patterns:
        files = [*SOURCE.glob(pattern)]
        if not files:
            raise FileNotFoundError(pattern)
        total += sum(len(file.read_text().splitlines()) for file in files)
    return total


def main() -> None:
    width = max(map(len, SUBSYSTEMS))
    for name, patterns in SUBSYSTEMS.items():
        print(f"{name:<{width}}  {lines_of(patterns):6,}")


if __name__ == "__main__":
    main()
