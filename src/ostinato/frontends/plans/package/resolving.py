"""Where packages come from: a directory, a .tgz file, a URL, a repository, or the cluster.

Dependencies of a package in a directory are looked for relative to that directory; those of any other package where the
package itself came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ostinato.client.client import Client
from ostinato.frontends.plans.api import Operator, OperatorVersion
from ostinato.frontends.plans.package.files import PackageError, read_archive, read_package
from ostinato.frontends.plans.package.resources import Package, package_of
from ostinato.frontends.plans.package.versions import order

_MAX_ARCHIVE: Final = 64 << 20  # bytes
_TIMEOUT: Final = 30.0  # seconds


class Resolver(ABC):
    """Finds packages by name."""

    @abstractmethod
    async def resolve(self, name: str, app_version: str = "", version: str = "") -> Resolved:
        """Return a package; the newest one without a version. Raises PackageError."""


class Resolved(NamedTuple):
    package: Package
    dependencies: Resolver


class PackageResolver(Resolver):
    """Directories and files, then URLs, then a repository."""

    def __init__(self, directory: Path, repository: Resolver | None = None) -> None:
        self._directory = directory
        self._repository = repository

    async def resolve(self, name: str, app_version: str = "", version: str = "") -> Resolved:
        path = self._directory / name
        if path.is_dir():
            return Resolved(package_of(read_package(path)), PackageResolver(path, self._repository))
        if path.is_file():
            return Resolved(package_of(read_package(path)), self)
        if name.startswith(("http://", "https://")):
            return Resolved(package_of(read_archive(download(name), name)), self)
        if self._repository is not None:
            return await self._repository.resolve(name, app_version, version)
        raise PackageError(f"{path}: no such package; give a directory, a .tgz file, a URL, or add a repository")


class ClusterResolver(Resolver):
    """Operator versions that are installed in a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def resolve(self, name: str, app_version: str = "", version: str = "") -> Resolved:
        found = [
            each
            async for each in self._client.list(OperatorVersion, namespace=self._namespace)
            if each.spec.operator.name == name
            and app_version in ("", each.spec.app_version)
            and version in ("", each.spec.version)
        ]
        if not found:
            wanted = " ".join(filter(None, (name, app_version, version)))
            raise PackageError(f"no operator version of {wanted} is installed in namespace {self._namespace}")
        newest = max(found, key=lambda each: (order(each.spec.app_version), order(each.spec.version)))
        operator = await self._client.get(Operator, name, namespace=self._namespace)
        return Resolved(Package(operator, newest), self)


def download(url: str) -> bytes:
    """Return the content of a URL. Raises PackageError."""
    from urllib.error import URLError  # noqa: PLC0415 - few commands need it
    from urllib.request import urlopen  # noqa: PLC0415

    try:
        with urlopen(url, timeout=_TIMEOUT) as response:  # noqa: S310 - the schemes are checked by the callers
            data: bytes = response.read(_MAX_ARCHIVE + 1)
    except (URLError, OSError, ValueError) as error:
        raise PackageError(f"{url}: {error}") from None
    if len(data) > _MAX_ARCHIVE:
        raise PackageError(f"{url}: more than {_MAX_ARCHIVE} bytes")
    return data


async def resolve_dependencies(root: Resolved) -> list[Package]:
    """Return the packages that a package installs, recursively, without the package itself.

    The tasks that install them get the names and versions that were found. Raises PackageError, also for cycles.
    """
    found: dict[str, Package] = {}
    await _walk(root, (_name(root.package),), found)
    return list(found.values())


async def _walk(parent: Resolved, path: tuple[str, ...], found: dict[str, Package]) -> None:
    for task in parent.package.version.spec.tasks:
        if task.kind != "KudoOperator":
            continue
        spec = task.spec
        try:
            child = await parent.dependencies.resolve(spec.package, spec.app_version, spec.operator_version)
        except PackageError as error:
            raise PackageError(
                f"failed to resolve package {spec.package}, dependency of package {path[-1]}: {error}"
            ) from None
        version = child.package.version.spec
        task.spec = msgspec.structs.replace(
            spec, package=child.package.name, operator_version=version.version, app_version=version.app_version
        )
        name = _name(child.package)
        if name in path:
            raise PackageError(f"cyclic package dependency found when adding package {path[-1]} -> {name}")
        if name not in found:
            found[name] = child.package
            await _walk(child, (*path, name), found)


def _name(package: Package) -> str:
    return package.version.metadata.name
