"""The images that the suite pulls, made from its own programs and from programs of this machine: no registry is needed.

Stand-ins, where the original cannot be built from Go modules: busybox's httpd for nginx, busybox for the utilities of
`ipc-utils` and `glibc-dns-testing`, and this machine's perl, bash, curl, dig and nc.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.conformance.archive import Image, Layer, write_archive
from tests.conformance.suite import MissingError, Suite
from tests.etcd_cluster import etcd_program

_REGISTRY: Final = "registry.k8s.io"
_E2E: Final = f"{_REGISTRY}/e2e-test-images"
_DIRECTORIES: Final = ("dev", "etc", "home", "lib", "lib64", "mnt", "proc", "root", "run", "sbin", "sys", "usr/bin")
_PASSWD: Final = b"""root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh
"""
_GROUP: Final = b"""root:x:0:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
nogroup:x:65534:
"""
_SYSTEM: Final = b'NAME="busybox, in place of Alpine Linux"\n'
_NGINX: Final = b"#!/bin/sh\nexec /bin/busybox httpd -f -v -p 80 -h /usr/share/nginx/html\n"
_WELCOME: Final = b"<html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1></html>\n"
_TOOLS: Final = ("bash", "getent", "ipcs", "ss")  # beside agnhost, as far as this machine has them
_NEEDED: Final = {"curl": "curl", "dig": "bind9-dnsutils", "nc.openbsd": "netcat-openbsd", "perl": "perl"}  # packages
_AGNHOST: Final = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"]}


class ImageBuilder:
    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    def build(self) -> None:
        """Write the archives that are missing."""
        self._suite.images.mkdir(parents=True, exist_ok=True)
        makers: dict[str, Callable[[], list[Image]]] = {
            "agnhost": self._agnhost,
            "busybox": self._busybox,
            "pause": self._pause,
            "perl": self._perl,
            "servers": self._servers,
        }
        for name, make in makers.items():
            archive = self._suite.images / f"{name}.tar"
            if not archive.exists():
                print(f"making the images of {archive.name}", flush=True)
                write_archive(archive, make())

    def _shell_layer(self) -> Layer:
        """Return a layer with users, busybox and its commands."""
        busybox = shutil.which("busybox")
        if busybox is None:
            raise MissingError("no busybox to make images of; install the package busybox-static")
        layer = Layer()
        for path in _DIRECTORIES:
            layer.directory(path)
        for path in ("tmp", "var/tmp"):
            layer.directory(path, 0o1777)
        layer.file("etc/passwd", _PASSWD)
        layer.file("etc/group", _GROUP)
        layer.file("etc/os-release", _SYSTEM)
        layer.file("etc/nsswitch.conf", b"hosts: files dns\npasswd: files\ngroup: files\n")
        layer.file("bin/sh", self._suite.program("sh").read_bytes(), 0o755)
        if wget := shutil.which("wget"):  # busybox's cannot verify certificates
            layer.program(Path(wget), "bin/wget")
        layer.program(Path(busybox), "bin/busybox")
        for command in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            layer.link(f"bin/{command}", "busybox")
        layer.link("usr/bin/env", "/bin/busybox")
        return layer

    def _busybox(self) -> list[Image]:
        base = self._shell_layer().content()
        pages, nnp = Layer(), Layer()
        pages.file("usr/share/nginx/html/index.html", _WELCOME)
        pages.file("usr/sbin/nginx", _NGINX, 0o755)
        nnp.file("usr/local/bin/nnp", self._suite.program("nnp").read_bytes(), 0o6755)
        html = pages.content()
        nginx: dict[str, Any] = {"Cmd": ["nginx", "-g", "daemon off;"], "ExposedPorts": {"80/tcp": {}}}
        return [
            Image([f"{_E2E}/busybox:1.37.0-1", f"{_E2E}/busybox:1.29-4"], [base], {"Cmd": ["sh"]}),
            Image([f"{_E2E}/nonroot:1.5"], [base], {"Cmd": ["sh"], "User": "1234"}),
            Image([f"{_E2E}/ipc-utils:1.4"], [base], {"Cmd": ["sh"]}),
            Image([f"{_E2E}/nginx:1.15-4"], [base, html], nginx),
            Image([f"{_E2E}/nginx:1.27-0"], [base, html], nginx),
            Image([f"{_E2E}/nonewprivs:1.4"], [base, nnp.content()], {"Cmd": ["nnp"]}),
        ]

    def _agnhost(self) -> list[Image]:
        layer = Layer()
        layer.file("agnhost", self._suite.program("agnhost").read_bytes(), 0o755)
        layer.link("agnhost-2", "agnhost")
        layer.directory("uploads")
        certificates = self._suite.sources("k8s.io/kubernetes/test/images/agnhost/porter")
        for name in ("localhost.crt", "localhost.key"):
            layer.file(name, (certificates / name).read_bytes())
        for name in _TOOLS:
            if found := shutil.which(name):
                layer.program(Path(found), f"usr/bin/{name}")
        for name in ("curl", "dig"):
            layer.program(_needed(name), f"usr/bin/{name}")
        if shell := shutil.which("dash"):  # static busybox's runs its own commands instead of those above
            layer.program(Path(shell), "bin/sh")
        layer.program(_needed("nc.openbsd"), "bin/nc")  # busybox's has no UDP
        tools = layer.content()
        base = self._shell_layer().content()
        images = certificates.parents[1]
        return [
            Image([f"{_E2E}/agnhost:2.63.0"], [base, tools], _AGNHOST),
            Image([f"{_E2E}/agnhost:2.55"], [base, tools], _AGNHOST),
            Image([f"{_E2E}/glibc-dns-testing:2.0.0"], [base, tools], {"Cmd": ["sh"]}),
            *(
                Image(
                    [f"{_E2E}/{name}:1.8"],
                    [base, tools, _picture(name, images)],
                    {"Entrypoint": ["/agnhost"], "Cmd": ["test-webserver"]},
                )
                for name in ("kitten", "nautilus")
            ),
        ]

    def _pause(self) -> list[Image]:
        layer = Layer()
        layer.file("pause", self._suite.program("pause").read_bytes(), 0o755)
        names = [f"{_REGISTRY}/pause:{version}" for version in ("3.10", "3.10.1", "3.10.2")]
        return [Image(names, [layer.content()], {"Entrypoint": ["/pause"], "User": "65535:65535"})]

    def _perl(self) -> list[Image]:
        layer = self._shell_layer()
        layer.program(_needed("perl"), "usr/bin/perl")
        return [Image([f"{_E2E}/perl:5.26"], [layer.content()], {"Cmd": ["perl"]})]

    def _servers(self) -> list[Image]:
        base = self._shell_layer().content()
        apiserver = Layer()
        apiserver.file("sample-apiserver", self._suite.program("sample-apiserver").read_bytes(), 0o755)
        images = [
            Image(
                [f"{_E2E}/sample-apiserver:1.29.2"], [base, apiserver.content()], {"Entrypoint": ["/sample-apiserver"]}
            )
        ]
        if found := etcd_program():
            etcd = Layer()
            etcd.file("usr/local/bin/etcd", Path(found).read_bytes(), 0o755)
            images.append(Image([f"{_REGISTRY}/etcd:3.6.8-0"], [base, etcd.content()], {"Cmd": ["etcd"]}))
        return images


def _picture(name: str, images: Path) -> bytes:
    layer = Layer()
    for file in (f"{name}.jpg", "data.json"):
        layer.file(file, (images / name / "html" / file).read_bytes())
    return layer.content()


def _needed(name: str) -> Path:
    """Return a program without which specs fail; `MissingError` if this machine does not have it."""
    found = shutil.which(name)
    if found is None:
        raise MissingError(f"no {name} to make images of; install the package {_NEEDED[name]}")
    return Path(found)
