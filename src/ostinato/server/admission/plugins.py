"""The plugins that every server has, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ostinato.server.admission.access.certificate_subject import CertificateSubject
from ostinato.server.admission.access.create_by_update import CreateByUpdate
from ostinato.server.admission.access.owner_references import NAME as OWNER_REFERENCES
from ostinato.server.admission.access.owner_references import OwnerReferences
from ostinato.server.admission.access.role_escalation import RoleEscalation
from ostinato.server.admission.access.signer_rights import SignerRights
from ostinato.server.admission.access.signing_request_user import SigningRequestUser
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.cluster.default_ingress_class import DefaultIngressClass
from ostinato.server.admission.cluster.namespace_lifecycle import NamespaceLifecycle
from ostinato.server.admission.cluster.storage import DefaultStorageClass, ProtectStorage, ResizeClaims
from ostinato.server.admission.cluster.taint_nodes import TaintNodes
from ostinato.server.admission.cluster.terminating_definition import TerminatingDefinition
from ostinato.server.admission.objects import Kind
from ostinato.server.admission.pod_security.plugin import PodSecurity
from ostinato.server.admission.pods.default_tolerations import DefaultTolerations
from ostinato.server.admission.pods.priority import Priority
from ostinato.server.admission.pods.runtime_class import RuntimeClass
from ostinato.server.admission.pods.service_account import ServiceAccount
from ostinato.server.admission.pods.topology import PodTopology
from ostinato.server.admission.policies.parameters import PolicyParameters
from ostinato.server.admission.policies.plugins import MutatingPolicy, ValidatingPolicy
from ostinato.server.admission.quota.limit_ranger import LimitRanger
from ostinato.server.admission.quota.resource_quota import ResourceQuota
from ostinato.server.admission.webhooks.plugins import MutatingWebhook, Parts, ValidatingWebhook

if TYPE_CHECKING:
    from ostinato.server.access.authorization.authorizer import Authorizer
    from ostinato.server.resources.registry import Registry
    from ostinato.server.webhooks import Ask


OPTIONAL = (OWNER_REFERENCES,)  # plugins that run only where they were enabled


class AdmissionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`enabled`: optional plugins, by the names that kube-apiserver gives them."""

    enabled: tuple[str, ...] = ()


def plugins(registry: Registry, authorizer: Authorizer, ask: Ask, settings: AdmissionSettings) -> list[Plugin]:
    """All enabled plugins. `ask`: how webhooks are called."""
    namespaces = Kind(registry, "", "v1", "namespaces")
    storage_classes = Kind(registry, "storage.k8s.io", "v1", "storageclasses")
    webhooks = Parts(registry, namespaces, authorizer, ask)
    before_webhooks: list[Plugin] = [
        PolicyParameters(registry, authorizer),
        CreateByUpdate(authorizer),
        TerminatingDefinition(),
        NamespaceLifecycle(namespaces.collection),
        LimitRanger(Kind(registry, "", "v1", "limitranges")),
        ServiceAccount(Kind(registry, "", "v1", "serviceaccounts")),
        TaintNodes(),
        PodSecurity(Kind(registry, "", "v1", "namespaces"), Kind(registry, "", "v1", "pods")),
        Priority(Kind(registry, "scheduling.k8s.io", "v1", "priorityclasses")),
        DefaultTolerations(),
        DefaultStorageClass(storage_classes),
        ProtectStorage(),
        *([OwnerReferences(registry, authorizer)] if OWNER_REFERENCES in settings.enabled else []),
        ResizeClaims(storage_classes),
        RuntimeClass(Kind(registry, "node.k8s.io", "v1", "runtimeclasses")),
        SigningRequestUser(),
        SignerRights(authorizer),
        CertificateSubject(),
        DefaultIngressClass(Kind(registry, "networking.k8s.io", "v1", "ingressclasses")),
        PodTopology(Kind(registry, "", "v1", "nodes")),
        MutatingPolicy(registry, _policies(registry, "mutating"), namespaces, authorizer),
    ]
    return [
        *before_webhooks,
        MutatingWebhook(_configurations(registry, "mutating"), webhooks, before_webhooks),
        RoleEscalation(authorizer),
        ValidatingPolicy(registry, _policies(registry, "validating"), namespaces, authorizer),
        ValidatingWebhook(_configurations(registry, "validating"), webhooks),
        ResourceQuota(Kind(registry, "", "v1", "resourcequotas")),
    ]


def _configurations(registry: Registry, what: str) -> Kind:
    """Configurations of webhooks of a sort."""
    return Kind(registry, "admissionregistration.k8s.io", "v1", f"{what}webhookconfigurations")


def _policies(registry: Registry, what: str) -> tuple[Kind, Kind]:
    """Policies of a sort, and their bindings."""
    group = "admissionregistration.k8s.io"
    return (
        Kind(registry, group, "v1", f"{what}admissionpolicies"),
        Kind(registry, group, "v1", f"{what}admissionpolicybindings"),
    )
