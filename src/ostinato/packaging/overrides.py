"""`deploy/overrides.yaml`: what a project decides about its deployment. Every field has a default, except the image.

The fields have the same names in the values of the Helm chart, where those exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ostinato.api.wire.yaml import decode_yaml
from ostinato.packaging.error import PackageError

Json = dict[str, Any]

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_UNQUOTED: Final = re.compile(r"Expected `str.* got `(int|float|bool)`")
_PLACE: Final = re.compile(r"(.*) - at `\$?\.?(.*)`", re.DOTALL)


class _Fields(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class Resources(_Fields, frozen=True, kw_only=True):
    requests: Mapping[str, str] = msgspec.field(default_factory=lambda: {"cpu": "50m", "memory": "64Mi"})
    limits: Mapping[str, str] = msgspec.field(default_factory=lambda: {"memory": "256Mi"})


class PullSecret(_Fields, frozen=True, kw_only=True):
    name: str


class ServiceAccount(_Fields, frozen=True, kw_only=True):
    create: bool = True
    name: str = ""  # defaults to the package's name
    annotations: Mapping[str, str] = {}


class Features(_Fields, frozen=True, kw_only=True):
    """Switches for objects of the package.

    - `secureMetrics`: metrics over TLS, to clients with a permitted token; off by default.
    - `serviceMonitor`, `alerts`: need the CustomResourceDefinitions of prometheus-operator; off by default.
    - `dashboard`: a ConfigMap for Grafana's sidecar; off by default.
    """

    namespace: bool = True  # the Namespace object; not in charts
    crds: bool = True
    rbac: bool = True
    user_roles: bool = True
    pod_disruption_budget: bool = True
    network_policy: bool = True
    metrics: bool = True
    secure_metrics: bool = False
    service_monitor: bool = False
    alerts: bool = False
    dashboard: bool = False


class Certificates(_Fields, frozen=True, kw_only=True):
    """Where the certificate of webhooks comes from. Defaults to what the program does: by default it makes its own.

    - `certManager`: cert-manager makes it, even if the program would.
    - `secret`: an existing Secret of type kubernetes.io/tls. Defaults to "": cert-manager makes it.
    - `issuer`: name of a cert-manager issuer. Defaults to "": a self-signed one of the package.
    """

    cert_manager: bool = False
    secret: str = ""
    issuer: str = ""
    issuer_kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"


class Person(_Fields, frozen=True, kw_only=True):
    name: str
    email: str


class Link(_Fields, frozen=True, kw_only=True):
    name: str
    url: str


class Icon(_Fields, frozen=True, kw_only=True):
    """`data`: base64."""

    data: str
    mediatype: Literal["image/gif", "image/jpeg", "image/png", "image/svg+xml"]


class Olm(_Fields, frozen=True, kw_only=True):
    """What only the OLM bundle needs."""

    channels: Sequence[str] = ("candidate",)
    default_channel: str = ""  # defaults to the first channel
    display_name: str = ""
    description: str = ""
    capabilities: Literal["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"] = (
        "Basic Install"
    )
    categories: Sequence[str] = ()
    maturity: str = "alpha"
    provider: str = ""
    maintainers: Sequence[Person] = ()
    links: Sequence[Link] = ()
    keywords: Sequence[str] = ()
    icon: Icon | None = None
    min_kube_version: str = "1.26.0"
    replaces: str = ""
    skip_range: str = ""


class Overrides(_Fields, frozen=True, kw_only=True):
    """See docs/how-to/package-an-operator.md for the fields."""

    name: str = ""
    namespace: str = ""
    version: str = ""
    description: str = ""
    program: str | Sequence[str] = ""
    image: str = ""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: Sequence[PullSecret] = ()
    namespaced: bool = False
    replicas: int = 1
    leader_election: bool = False
    args: Sequence[str] = ()
    env: Mapping[str, str | Json] = {}
    env_from: Sequence[Json] = ()
    resources: Resources = Resources()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    pod_labels: Mapping[str, str] = {}
    pod_annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: Sequence[Json] = ()
    affinity: Json = {}
    topology_spread_constraints: Sequence[Json] = ()
    priority_class_name: str = ""
    pod_security_context: Json = {}
    writable_directories: Sequence[str] = ("/tmp",)  # noqa: S108 - an emptyDir of the container
    volumes: Sequence[Json] = ()
    volume_mounts: Sequence[Json] = ()
    service_account: ServiceAccount = ServiceAccount()
    features: Features = Features()
    certificates: Certificates = Certificates()
    olm: Olm = Olm()


def read_overrides(path: Path) -> Overrides:
    """Return the contents of a file. PackageError with file and field if it is not valid."""
    try:
        content = decode_yaml(path.read_bytes(), strict=True)
    except OSError as error:
        raise PackageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise PackageError(f"{path}: not YAML: {error}") from None
    return parse_overrides(content, str(path))


def parse_overrides(content: Any, file: str) -> Overrides:
    """Return decoded overrides. `file`: for messages."""
    try:
        return msgspec.convert({} if content is None else content, Overrides)
    except msgspec.ValidationError as error:
        raise PackageError(f"{file}: {_explained(str(error))}") from None


def plain(value: Any) -> Any:
    """Return a part of the overrides as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _explained(message: str) -> str:
    """Return `field: problem; remedy` for a message of msgspec."""
    placed = _PLACE.fullmatch(message)
    text, place = (placed[1], placed[2]) if placed else (message, "")
    unknown = _UNKNOWN.fullmatch(text)
    if unknown is None:
        advice = "; put the value in quotes" if _UNQUOTED.match(text) else ""
        return f"{place}: {text}{advice}" if place else text
    known = _fields_at(place)
    nearest = get_close_matches(unknown[1], known, n=1)
    advice = f"did you mean {nearest[0]}?" if nearest else f"known fields: {', '.join(known)}"
    return f"{place + '.' if place else ''}{unknown[1]}: unknown field; {advice}"


def _fields_at(place: str) -> list[str]:
    """Return the names of the fields of the struct at a path."""
    cls: Any = Overrides
    for step in re.sub(r"\[[^]]*\]", "", place).split(".") if place else ():
        for field in msgspec.structs.fields(cls):
            if field.encode_name == step:
                cls = next((each for each in (field.type, *_arguments(field.type)) if _is_struct(each)), cls)
    return [field.encode_name for field in msgspec.structs.fields(cls)]


def _arguments(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", ())


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
