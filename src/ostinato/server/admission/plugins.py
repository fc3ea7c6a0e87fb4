"""Build the enabled admission plugins, in kube-apiserver's order.

Default-off plugins are imported when one is enabled. Names without an entry have no effect:
AlwaysAdmit has none anywhere; PodGroupProtection, PodGroupWorkloadExists, JobValidation and
ClusterTrustBundleAttest belong to APIs that Kubernetes does not serve by default, nor does this server.
"""

from __future__ import annotations

from functools import partial

from ostinato.server.admission import catalogue
from ostinato.server.admission.access.certificate_signers import CertificateApproval, CertificateSigning
from ostinato.server.admission.access.certificate_subject import CertificateSubjectRestriction
from ostinato.server.admission.access.create_by_update import CreateByUpdate
from ostinato.server.admission.access.node_restriction import NodeRestriction
from ostinato.server.admission.access.role_escalation import RoleEscalation
from ostinato.server.admission.access.signing_request_user import SigningRequestUser
from ostinato.server.admission.chain import Plugin
from ostinato.server.admission.cluster.default_ingress_class import DefaultIngressClass
from ostinato.server.admission.cluster.namespace_lifecycle import NamespaceLifecycle
from ostinato.server.admission.cluster.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from ostinato.server.admission.cluster.taint_nodes import TaintNodesByCondition
from ostinato.server.admission.cluster.terminating_definition import TerminatingDefinition
from ostinato.server.admission.dependencies import PluginDependencies, PluginFactory
from ostinato.server.admission.pod_security.plugin import PodSecurity
from ostinato.server.admission.pods.default_tolerations import DefaultTolerationSeconds
from ostinato.server.admission.pods.priority import Priority
from ostinato.server.admission.pods.resize import NodeDeclaredFeatureValidator, PodResizeValidator
from ostinato.server.admission.pods.runtime_class import RuntimeClass
from ostinato.server.admission.pods.service_account import ServiceAccount
from ostinato.server.admission.pods.topology import PodTopologyLabels
from ostinato.server.admission.policies.parameters import PolicyParameters
from ostinato.server.admission.policies.plugins import MutatingAdmissionPolicyPlugin, ValidatingAdmissionPolicyPlugin
from ostinato.server.admission.quota.limit_ranger import LimitRanger
from ostinato.server.admission.quota.resource_quota import ResourceQuota
from ostinato.server.admission.webhooks.plugins import (
    MutatingAdmissionWebhookPlugin,
    ValidatingAdmissionWebhookPlugin,
    WebhookDependencies,
)
from ostinato.server.resources.lister import Lister


def plugins(dependencies: PluginDependencies) -> list[Plugin]:
    """All enabled plugins, after the checks that kube-apiserver's registries do and that cannot be disabled."""
    settings = dependencies.settings
    made: list[Plugin] = [
        PolicyParameters(dependencies.registry, dependencies.authorizer),
        CreateByUpdate(dependencies.authorizer),
        TerminatingDefinition(),
        SigningRequestUser(),
        RoleEscalation(dependencies.authorizer),
    ]
    if not settings.allow_privileged:
        from ostinato.server.admission.pod_security.privileged import PrivilegedContainers  # noqa: PLC0415 - see above

        made.append(PrivilegedContainers())
    names = catalogue.enabled(settings.enabled, settings.disabled)
    known = _PLUGINS
    if not catalogue.OFF_BY_DEFAULT.isdisjoint(names):
        from ostinato.server.admission.optional_plugins import PLUGINS  # noqa: PLC0415 - see above

        known = known | PLUGINS
    for name in names:
        if name in known:
            made.append(known[name](dependencies._replace(before=tuple(made))))
    return made


_STORAGE, _REGISTRATION = "storage.k8s.io", "admissionregistration.k8s.io"


def _default_tolerations(dependencies: PluginDependencies) -> Plugin:
    settings = dependencies.settings
    return DefaultTolerationSeconds(settings.not_ready_toleration_seconds, settings.unreachable_toleration_seconds)


def _pod_security(dependencies: PluginDependencies) -> Plugin:
    configuration = dependencies.settings.configuration.get("PodSecurity")
    return PodSecurity(dependencies.kind("namespaces"), dependencies.kind("pods"), configuration)


def _policies(dependencies: PluginDependencies, sort: str) -> tuple[Lister, Lister]:
    """Listers of the policies of a type ("mutating", "validating") and of their bindings."""
    return (
        dependencies.kind(f"{sort}admissionpolicies", _REGISTRATION),
        dependencies.kind(f"{sort}admissionpolicybindings", _REGISTRATION),
    )


def _mutating_policy(dependencies: PluginDependencies) -> Plugin:
    kinds = _policies(dependencies, "mutating")
    return MutatingAdmissionPolicyPlugin(
        dependencies.registry, kinds, dependencies.kind("namespaces"), dependencies.authorizer
    )


def _validating_policy(dependencies: PluginDependencies) -> Plugin:
    kinds = _policies(dependencies, "validating")
    return ValidatingAdmissionPolicyPlugin(
        dependencies.registry, kinds, dependencies.kind("namespaces"), dependencies.authorizer
    )


def _webhook_dependencies(dependencies: PluginDependencies, name: str) -> WebhookDependencies:
    """Dependencies of the webhook plugins; the client identity is in the plugin's configuration."""
    identities = dependencies.settings.configuration.get(name)
    post_review = dependencies.webhooks.post_review
    if identities is not None:
        post_review = partial(post_review, identify=identities.of)
    return WebhookDependencies(
        dependencies.registry,
        dependencies.kind("namespaces"),
        dependencies.authorizer,
        post_review,
        dependencies.webhook_metrics,
    )


def _mutating_webhook(dependencies: PluginDependencies) -> Plugin:
    configurations = dependencies.kind("mutatingwebhookconfigurations", _REGISTRATION)
    return MutatingAdmissionWebhookPlugin(
        configurations, _webhook_dependencies(dependencies, "MutatingAdmissionWebhook"), dependencies.before
    )


def _validating_webhook(dependencies: PluginDependencies) -> Plugin:
    configurations = dependencies.kind("validatingwebhookconfigurations", _REGISTRATION)
    return ValidatingAdmissionWebhookPlugin(
        configurations, _webhook_dependencies(dependencies, "ValidatingAdmissionWebhook")
    )


def _resource_quota(dependencies: PluginDependencies) -> Plugin:
    limited = dependencies.settings.configuration.get("ResourceQuota") or ()
    return ResourceQuota(dependencies.kind("resourcequotas"), limited)


_PLUGINS: dict[str, PluginFactory] = {
    "NamespaceLifecycle": lambda m: NamespaceLifecycle(m.kind("namespaces").collection),
    "LimitRanger": lambda m: LimitRanger(m.kind("limitranges")),
    "ServiceAccount": lambda m: ServiceAccount(m.kind("serviceaccounts")),
    "NodeRestriction": lambda m: NodeRestriction(m.registry, m.authorizer),
    "TaintNodesByCondition": lambda _: TaintNodesByCondition(),
    "PodSecurity": _pod_security,
    "Priority": lambda m: Priority(m.kind("priorityclasses", "scheduling.k8s.io")),
    "DefaultTolerationSeconds": _default_tolerations,
    "DefaultStorageClass": lambda m: DefaultStorageClass(m.kind("storageclasses", _STORAGE)),
    "StorageObjectInUseProtection": lambda _: StorageObjectInUseProtection(),
    "PersistentVolumeClaimResize": lambda m: PersistentVolumeClaimResize(m.kind("storageclasses", _STORAGE)),
    "RuntimeClass": lambda m: RuntimeClass(m.kind("runtimeclasses", "node.k8s.io")),
    "CertificateApproval": lambda m: CertificateApproval(m.authorizer),
    "CertificateSigning": lambda m: CertificateSigning(m.authorizer),
    "CertificateSubjectRestriction": lambda _: CertificateSubjectRestriction(),
    "DefaultIngressClass": lambda m: DefaultIngressClass(m.kind("ingressclasses", "networking.k8s.io")),
    "PodTopologyLabels": lambda m: PodTopologyLabels(m.kind("nodes")),
    "NodeDeclaredFeatureValidator": lambda m: NodeDeclaredFeatureValidator(m.kind("nodes")),
    "PodResizeValidator": lambda m: PodResizeValidator(m.kind("nodes")),
    "MutatingAdmissionPolicy": _mutating_policy,
    "MutatingAdmissionWebhook": _mutating_webhook,
    "ValidatingAdmissionPolicy": _validating_policy,
    "ValidatingAdmissionWebhook": _validating_webhook,
    "ResourceQuota": _resource_quota,
}
