"""The admission plugins of a server: those that are enabled, in kube-apiserver's order.

Plugins that are off by default are loaded when one is enabled. Names without an entry here or there have no effect:
 AlwaysAdmit has none anywhere; PodGroupProtection, PodGroupWorkloadExists, JobValidation and
ClusterTrustBundleAttest belong to APIs that Kubernetes does not serve by default, nor does this server.
"""

from __future__ import annotations

from functools import partial

from ostinato.server.admission import catalogue
from ostinato.server.admission.access.certificate_signers import CertificateApproval, CertificateSigning
from ostinato.server.admission.access.certificate_subject import CertificateSubject
from ostinato.server.admission.access.create_by_update import CreateByUpdate
from ostinato.server.admission.access.node_restriction import NodeRestriction
from ostinato.server.admission.access.role_escalation import RoleEscalation
from ostinato.server.admission.access.signing_request_user import SigningRequestUser
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.cluster.default_ingress_class import DefaultIngressClass
from ostinato.server.admission.cluster.namespace_lifecycle import NamespaceLifecycle
from ostinato.server.admission.cluster.storage import DefaultStorageClass, ProtectStorage, ResizeClaims
from ostinato.server.admission.cluster.taint_nodes import TaintNodes
from ostinato.server.admission.cluster.terminating_definition import TerminatingDefinition
from ostinato.server.admission.dependencies import Make, Materials
from ostinato.server.admission.pod_security.plugin import PodSecurity
from ostinato.server.admission.pods.default_tolerations import DefaultTolerations
from ostinato.server.admission.pods.priority import Priority
from ostinato.server.admission.pods.resize import NodeDeclaredFeatures, PodResize
from ostinato.server.admission.pods.runtime_class import RuntimeClass
from ostinato.server.admission.pods.service_account import ServiceAccount
from ostinato.server.admission.pods.topology import PodTopology
from ostinato.server.admission.policies.parameters import PolicyParameters
from ostinato.server.admission.policies.plugins import MutatingPolicy, ValidatingPolicy
from ostinato.server.admission.quota.limit_ranger import LimitRanger
from ostinato.server.admission.quota.resource_quota import ResourceQuota
from ostinato.server.admission.webhooks.plugins import MutatingWebhook, Parts, ValidatingWebhook
from ostinato.server.resources.lister import Lister


def plugins(materials: Materials) -> list[Plugin]:
    """All enabled plugins, behind the checks that belong to kinds themselves and cannot be turned off."""
    settings = materials.settings
    made: list[Plugin] = [
        PolicyParameters(materials.registry, materials.authorizer),
        CreateByUpdate(materials.authorizer),
        TerminatingDefinition(),
        SigningRequestUser(),
        RoleEscalation(materials.authorizer),
    ]
    names = catalogue.enabled(settings.enabled, settings.disabled)
    known = _PLUGINS
    if not catalogue.OFF_BY_DEFAULT.isdisjoint(names):
        from ostinato.server.admission.optional_plugins import PLUGINS  # noqa: PLC0415 - see above

        known = known | PLUGINS
    for name in names:
        if name in known:
            made.append(known[name](materials._replace(before=tuple(made))))
    return made


_STORAGE, _REGISTRATION = "storage.k8s.io", "admissionregistration.k8s.io"


def _default_tolerations(materials: Materials) -> Plugin:
    settings = materials.settings
    return DefaultTolerations(settings.not_ready_toleration_seconds, settings.unreachable_toleration_seconds)


def _pod_security(materials: Materials) -> Plugin:
    configuration = materials.settings.configuration.get("PodSecurity")
    return PodSecurity(materials.kind("namespaces"), materials.kind("pods"), configuration)


def _policies(materials: Materials, sort: str) -> tuple[Lister, Lister]:
    """Policies of a sort, and their bindings."""
    return (
        materials.kind(f"{sort}admissionpolicies", _REGISTRATION),
        materials.kind(f"{sort}admissionpolicybindings", _REGISTRATION),
    )


def _mutating_policy(materials: Materials) -> Plugin:
    kinds = _policies(materials, "mutating")
    return MutatingPolicy(materials.registry, kinds, materials.kind("namespaces"), materials.authorizer)


def _validating_policy(materials: Materials) -> Plugin:
    kinds = _policies(materials, "validating")
    return ValidatingPolicy(materials.registry, kinds, materials.kind("namespaces"), materials.authorizer)


def _webhook_parts(materials: Materials, name: str) -> Parts:
    """What webhooks are asked with: as whom says the configuration of the plugin."""
    identities = materials.settings.configuration.get(name)
    ask = materials.webhooks.ask
    if identities is not None:
        ask = partial(ask, identify=identities.of)
    return Parts(materials.registry, materials.kind("namespaces"), materials.authorizer, ask)


def _mutating_webhook(materials: Materials) -> Plugin:
    configurations = materials.kind("mutatingwebhookconfigurations", _REGISTRATION)
    return MutatingWebhook(configurations, _webhook_parts(materials, "MutatingAdmissionWebhook"), materials.before)


def _validating_webhook(materials: Materials) -> Plugin:
    configurations = materials.kind("validatingwebhookconfigurations", _REGISTRATION)
    return ValidatingWebhook(configurations, _webhook_parts(materials, "ValidatingAdmissionWebhook"))


def _resource_quota(materials: Materials) -> Plugin:
    limited = materials.settings.configuration.get("ResourceQuota") or ()
    return ResourceQuota(materials.kind("resourcequotas"), limited)


_PLUGINS: dict[str, Make] = {
    "NamespaceLifecycle": lambda m: NamespaceLifecycle(m.kind("namespaces").collection),
    "LimitRanger": lambda m: LimitRanger(m.kind("limitranges")),
    "ServiceAccount": lambda m: ServiceAccount(m.kind("serviceaccounts")),
    "NodeRestriction": lambda m: NodeRestriction(m.registry, m.authorizer),
    "TaintNodesByCondition": lambda _: TaintNodes(),
    "PodSecurity": _pod_security,
    "Priority": lambda m: Priority(m.kind("priorityclasses", "scheduling.k8s.io")),
    "DefaultTolerationSeconds": _default_tolerations,
    "DefaultStorageClass": lambda m: DefaultStorageClass(m.kind("storageclasses", _STORAGE)),
    "StorageObjectInUseProtection": lambda _: ProtectStorage(),
    "PersistentVolumeClaimResize": lambda m: ResizeClaims(m.kind("storageclasses", _STORAGE)),
    "RuntimeClass": lambda m: RuntimeClass(m.kind("runtimeclasses", "node.k8s.io")),
    "CertificateApproval": lambda m: CertificateApproval(m.authorizer),
    "CertificateSigning": lambda m: CertificateSigning(m.authorizer),
    "CertificateSubjectRestriction": lambda _: CertificateSubject(),
    "DefaultIngressClass": lambda m: DefaultIngressClass(m.kind("ingressclasses", "networking.k8s.io")),
    "PodTopologyLabels": lambda m: PodTopology(m.kind("nodes")),
    "NodeDeclaredFeatureValidator": lambda m: NodeDeclaredFeatures(m.kind("nodes")),
    "PodResizeValidator": lambda m: PodResize(m.kind("nodes")),
    "MutatingAdmissionPolicy": _mutating_policy,
    "MutatingAdmissionWebhook": _mutating_webhook,
    "ValidatingAdmissionPolicy": _validating_policy,
    "ValidatingAdmissionWebhook": _validating_webhook,
    "ResourceQuota": _resource_quota,
}
