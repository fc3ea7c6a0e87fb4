"""Repositories of packages: an index over HTTP, and the list of repositories of a user.

`HOME/repository/repositories.yaml` lists repositories and names the default, as `kubectl kudo` keeps it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import msgspec
import yaml

from ostinato.api.struct import Struct
from ostinato.api.wire.json import DecodeError
from ostinato.frontends.plans.package.files import PackageError, read_archive
from ostinato.frontends.plans.package.resolving import PackageResolver, Resolved, Resolver, download
from ostinato.frontends.plans.package.resources import package_of
from ostinato.frontends.plans.package.versions import order
from ostinato.frontends.plans.parameters import load_yaml

COMMUNITY: Final = "https://kudo-repository.storage.googleapis.com/0.10.0"


class Entry(Struct):
    """A version of a package in an index."""

    name: str = ""
    operator_version: str = ""
    app_version: str = ""
    description: str = ""
    kudo_version: str = ""
    kubernetes_version: str = ""
    maintainers: list[dict[str, str]] | None = None
    urls: list[str] = []
    removed: bool = False
    digest: str = ""


class Index(Struct):
    api_version: str = "v1"
    entries: dict[str, list[Entry]] = {}
    generated: str = ""

    def sort(self) -> None:
        """Sort the versions of each package, the newest first."""
        for versions in self.entries.values():
            versions.sort(key=lambda each: (order(each.app_version), order(each.operator_version)), reverse=True)

    def find(self, name: str, app_version: str = "", version: str = "") -> Entry | None:
        """Return the newest version of a package that matches."""
        for each in self.entries.get(name, ()):
            matches = app_version in ("", each.app_version) and version in ("", each.operator_version)
            if matches and not each.removed:
                return each
        return None


def parse_index(text: str, source: str) -> Index:
    """Parse an index. Raises PackageError."""
    try:
        document = load_yaml(text)
        index = msgspec.convert(_plain(document), Index, strict=False)
    except (DecodeError, msgspec.ValidationError) as error:
        raise PackageError(f"{source}: not an index: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict) or not document.get("apiVersion"):
        raise PackageError(f"{source}: not an index: no apiVersion specified")
    index.sort()
    return index


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


class Repository(Resolver):
    """A repository: `index.yaml`, and the archives that it names."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url.rstrip("/")

    def index(self) -> Index:
        """Read the index. Raises PackageError."""
        if not self.url.startswith(("http://", "https://")):
            raise PackageError(f"repository {self.name}: {self.url}: use an http:// or https:// URL")
        source = f"{self.url}/index.yaml"
        return parse_index(download(source).decode(errors="replace"), source)

    async def resolve(self, name: str, app_version: str = "", version: str = "") -> Resolved:
        found = self.index().find(name, app_version, version)
        if found is None or not found.urls:
            wanted = " ".join(filter(None, (name, app_version, version)))
            raise PackageError(f"no package {wanted} in repository {self.name} ({self.url})")
        url = urljoin(f"{self.url}/", found.urls[0])
        if not url.startswith(("http://", "https://")):
            raise PackageError(f"repository {self.name}: {url}: use an http:// or https:// URL")
        data = download(url)
        digest = hashlib.sha256(data).hexdigest()
        if found.digest and digest != found.digest:
            raise PackageError(f"{url}: sha256 is {digest}, the index says {found.digest}")
        return Resolved(package_of(read_archive(data, url)), PackageResolver(Path(), self))


class Known(Struct):
    name: str = ""
    url: str = ""


class Repositories(Struct):
    """The repositories of a user."""

    repo_version: str = "v1"
    context: str = "community"
    repositories: list[Known] = []

    def find(self, name: str = "") -> Repository:
        """Return a repository; the default one without a name. Raises PackageError."""
        wanted = name or self.context
        for each in self.repositories:
            if each.name == wanted:
                return Repository(each.name, each.url)
        known = ", ".join(each.name for each in self.repositories)
        raise PackageError(f"no repository {wanted}; repositories are {known}")


def load_repositories(home: Path) -> Repositories:
    """Read the repositories of a user; KUDO's own without a file. Raises PackageError."""
    path = _path(home)
    if not path.exists():
        return Repositories(repositories=[Known(name="community", url=COMMUNITY)])
    try:
        return msgspec.convert(_plain(load_yaml(path.read_text())), Repositories, strict=False)
    except (DecodeError, msgspec.ValidationError, OSError) as error:
        raise PackageError(f"{path}: {' '.join(str(error).split())}") from None


def save_repositories(home: Path, repositories: Repositories) -> None:
    path = _path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(msgspec.to_builtins(repositories), sort_keys=False))


def _path(home: Path) -> Path:
    return home / "repository" / "repositories.yaml"


def index_of(directory: Path, url: str) -> Index:
    """Return the index of the archives in a directory. Raises PackageError."""
    index = Index()
    for path, data in _archives(directory):
        package = package_of(read_archive(data, str(path)))
        spec = package.operator.spec
        entry = Entry(
            name=package.name,
            operator_version=package.version.spec.version,
            app_version=package.version.spec.app_version,
            description=spec.description,
            kudo_version=spec.kudo_version,
            kubernetes_version=spec.kubernetes_version,
            maintainers=[{"name": each.name, "email": each.email} for each in spec.maintainers] or None,
            urls=[urljoin(f"{url.rstrip('/')}/", path.name)],
            digest=hashlib.sha256(data).hexdigest(),
        )
        index.entries.setdefault(package.name, []).append(entry)
    index.sort()
    return index


def _archives(directory: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(directory.glob("*.tgz")):
        yield path, path.read_bytes()
