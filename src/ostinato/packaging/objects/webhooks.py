"""Webhook configurations and definitions, with the certificate that they need.

- A program that makes its own certificates injects the CA bundle itself.
- For one that reads files, cert-manager makes the Secret and injects the bundle; or the Secret exists already, and so
  must the bundle.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.packaging.manifest import Manifest, extended, formatted, given
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.objects.workload import certificate_secret
from ostinato.packaging.package import Package

Json = dict[str, Any]

_INJECT: Final = "cert-manager.io/inject-ca-from"
_API: Final = "cert-manager.io/v1"


def definitions(inputs: Inputs) -> list[Manifest]:
    """Return the CustomResourceDefinitions."""
    converted = {
        name for server in inputs.package.operator.webhooks if server.certificates for name in server.definitions
    }
    found = []
    for each in inputs.package.operator.definitions:
        name = each["metadata"]["name"]
        own = {**each["metadata"].get("annotations", {}), **(_injection(inputs) if name in converted else {})}
        annotations = given({"annotations": extended(inputs.annotations, own)})
        metadata = {**each["metadata"], "labels": inputs.labels, **annotations}
        found.append(Manifest(f"crds/{name}.yaml", {**each, "metadata": metadata}, "crds"))
    return found


def configurations(inputs: Inputs) -> list[Manifest]:
    """Return the webhook configurations."""
    found = []
    for server in inputs.package.operator.webhooks:
        for each in server.configurations:
            metadata = inputs.metadata(each["metadata"]["name"], namespaced=False)
            if server.certificates:
                metadata |= given({"annotations": extended(inputs.annotations, _injection(inputs))})
            found.append(Manifest("webhooks.yaml", {**each, "metadata": metadata}))
    return found


def certificates(inputs: Inputs) -> list[Manifest]:
    """Return the Certificate and its Issuer, if cert-manager makes the certificate."""
    if not _by_cert_manager(inputs.package):
        return []
    chosen = inputs.package.overrides.certificates
    servers = [each for each in inputs.package.operator.webhooks if each.certificates]
    hosts = sorted({host for each in servers for host in each.endpoint.hosts if host.endswith((".svc", ".local"))})
    issuer = {"name": chosen.issuer, "kind": chosen.issuer_kind} if chosen.issuer else {"name": inputs.named("issuer")}
    spec = {
        "secretName": certificate_secret(inputs),
        "dnsNames": hosts,
        "issuerRef": {"kind": "Issuer", "group": "cert-manager.io", **issuer},
        "privateKey": {"rotationPolicy": "Always"},
    }
    found = []
    if not chosen.issuer:
        metadata = inputs.metadata(inputs.named("issuer"))
        own = {"apiVersion": _API, "kind": "Issuer", "metadata": metadata, "spec": {"selfSigned": {}}}
        found.append(Manifest("certificate.yaml", own))
    metadata = inputs.metadata(inputs.named("webhook"))
    made = {"apiVersion": _API, "kind": "Certificate", "metadata": metadata, "spec": spec}
    return [*found, Manifest("certificate.yaml", made)]


def _by_cert_manager(package: Package) -> bool:
    reads_files = any(server.certificates for server in package.operator.webhooks)
    return reads_files and not package.overrides.certificates.secret


def _injection(inputs: Inputs) -> Json:
    """Return the annotation by which cert-manager injects the CA bundle."""
    if not _by_cert_manager(inputs.package):
        return {}
    return {_INJECT: formatted("%s/%s", inputs.namespace, inputs.named("webhook"))}
