"""Names of kube-apiserver's admission plugins in their order, and the default-off ones.

Imports no plugin, so that options can be checked before the server is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NAMES: Final = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)

OFF_BY_DEFAULT: Final = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)


class PluginNameError(ValueError):
    """An invalid list of plugins; the message names the valid ones."""


def enabled(enable: Sequence[str], disable: Sequence[str]) -> list[str]:
    """The enabled plugins, in order. PluginNameError for unknown names and names in both lists."""
    for option, names in (("enable-admission-plugins", enable), ("disable-admission-plugins", disable)):
        for name in names:
            if name not in NAMES:
                known = ", ".join(sorted(NAMES))
                raise PluginNameError(f'{option} plugin "{name}" is unknown; known plugins: {known}')
    both = sorted(set(enable) & set(disable))
    if both:
        raise PluginNameError(
            f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped"
        )
    return [name for name in NAMES if name in enable or (name not in OFF_BY_DEFAULT and name not in disable)]
