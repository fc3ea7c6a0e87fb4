"""Health of an applied object: whether a step is done with it.

- The kinds that KUDO knows have its rules: a Deployment or StatefulSet is rolled out, a Job has succeeded, a Pod
  runs and is ready, a definition is established, a Namespace is active, a Service has its addresses, an Instance
  has no plan.
- Kinds with a registered check (`readiness_check`) have that. All other kinds are healthy as soon as they exist.
- A failed Job is fatal; anything else may recover.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupKind
from ostinato.controllers.objects.readiness import Readiness, has_readiness_check, readiness_of
from ostinato.frontends.plans.api import GROUP

Json = dict[str, Any]

_CHECKED: Final = frozenset(
    {
        GroupKind("apps", "Deployment"),
        GroupKind("apps", "StatefulSet"),
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("", "Namespace"),
    }
)
WORKLOADS: Final = (  # kinds of which the readiness of an instance is made
    GroupKind("apps", "Deployment"),
    GroupKind("apps", "StatefulSet"),
    GroupKind("", "Pod"),
)
_HEALTHY: Final = Readiness("Current", "healthy")


def health_of(instance: Json) -> Readiness:
    """Return the health of an object; `Failed` if it cannot recover."""
    kind = access.gvk(instance).group_kind
    spec, status = instance.get("spec") or {}, instance.get("status") or {}
    if access.is_being_deleted(instance):
        return Readiness("Terminating", "being deleted")
    if has_readiness_check(kind):
        return readiness_of(instance)
    if kind == GroupKind("batch", "Job"):
        return _job(instance, status)
    if kind == GroupKind("", "Pod"):
        return _pod(instance, status)
    if kind == GroupKind("", "Service"):
        return _service(spec, status)
    if kind == GroupKind(GROUP, "Instance"):
        return plan_health(instance)
    if kind in _CHECKED:
        if kind.group == "apps" and "observedGeneration" not in status:
            return Readiness("InProgress", "not observed yet")
        found = readiness_of(instance)
        return Readiness("InProgress", found.message) if found.state == "Failed" else found
    return _HEALTHY


def _job(instance: Json, status: Json) -> Readiness:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            name = access.name(instance)
            return Readiness("Failed", f'job "{name}" has failed terminally: {condition.get("message", "")}')
    if int(status.get("succeeded") or 0) >= 1 or readiness_is(status, "Complete"):
        return _HEALTHY
    return Readiness("InProgress", f'job "{access.name(instance)}" still running or failed')


def readiness_is(status: Json, condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in status.get("conditions") or ()
    )


def _pod(instance: Json, status: Json) -> Readiness:
    if status.get("phase") == "Running" and readiness_is(status, "Ready"):
        return _HEALTHY
    return Readiness("InProgress", f"pod {access.key(instance)} is not running yet: {status.get('phase', '')}")


def _service(spec: Json, status: Json) -> Readiness:
    if spec.get("type") == "ExternalName":
        return _HEALTHY
    if not spec.get("clusterIP"):
        return Readiness("InProgress", "no cluster IP yet")
    balanced = (status.get("loadBalancer") or {}).get("ingress") or spec.get("externalIPs")
    if spec.get("type") == "LoadBalancer" and not balanced:
        return Readiness("InProgress", "no load balancer ingress yet")
    return _HEALTHY


def plan_health(instance: Json) -> Readiness:
    """Return the health of an object that plans run on: the last plan is complete, and no other is due."""
    status = instance.get("status") or {}
    execution = status.get("execution") or {}
    observed = int(execution.get("observedGeneration") or 0)
    if observed < access.generation(instance):
        return Readiness("InProgress", f"{access.describe(instance)} has not been looked at yet")
    plan = execution.get("plan")
    if plan:
        state = ((status.get("planStatus") or {}).get(plan) or {}).get("status", "")
        return Readiness("InProgress", f"{access.describe(instance)}: plan {plan} is {state}")
    for name, each in (status.get("planStatus") or {}).items():
        if each.get("uid") and each.get("uid") == execution.get("lastUid") and each.get("status") != "COMPLETE":
            return Readiness("InProgress", f"{access.describe(instance)}: plan {name} is {each.get('status')}")
    return _HEALTHY
