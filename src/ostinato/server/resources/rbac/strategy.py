"""Strategies of Roles, ClusterRoles and their bindings."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.selectors import labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.checks import checked
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.workloads import parsed_selector

_GROUP = "rbac.authorization.k8s.io"
_ROLE = Path("roleRef")


class _Rbac(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    allow_create_on_update = True


class Role(_Rbac):
    namespaced: ClassVar[bool] = True

    def validate(self, obj: Json) -> list[FieldError]:
        return [
            error for i, rule in enumerate(obj.get("rules") or ()) for error in self._rule(rule, Path("rules").index(i))
        ]

    def _rule(self, rule: Json, path: Path) -> list[FieldError]:
        errors = []
        if not rule.get("verbs"):
            errors.append(FieldError.required(path.child("verbs"), "verbs must contain at least one value"))
        urls, at = rule.get("nonResourceURLs"), path.child("nonResourceURLs")
        if urls:
            if self.namespaced:
                errors.append(FieldError.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(FieldError.invalid(at, urls, detail))
            return errors
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            errors.append(FieldError.required(path.child("apiGroups"), detail))
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            errors.append(FieldError.required(path.child("resources"), detail))
        return errors


class ClusterRole(Role):
    namespaced = False

    def validate(self, obj: Json) -> list[FieldError]:
        errors = super().validate(obj)
        aggregation, path = obj.get("aggregationRule"), Path("aggregationRule", "clusterRoleSelectors")
        if aggregation is None:
            return errors
        selectors = aggregation.get("clusterRoleSelectors") or ()
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(FieldError.required(path, detail))
        for i, selector in enumerate(selectors):
            errors += labels.validate_label_selector(selector, path.index(i))
            if parsed_selector(selector) is None:
                errors.append(FieldError.invalid(path.index(i), None, "invalid label selector."))
        return errors


class RoleBinding(_Rbac):
    namespaced: ClassVar[bool] = True
    roles: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def default(self, obj: Json) -> None:
        role = obj.setdefault("roleRef", {})
        role["apiGroup"] = role.get("apiGroup") or _GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _GROUP

    def validate(self, obj: Json) -> list[FieldError]:
        role = obj.get("roleRef") or {}
        errors = []
        if role.get("apiGroup") != _GROUP:
            errors.append(FieldError.not_supported(_ROLE.child("apiGroup"), role.get("apiGroup", ""), [_GROUP]))
        if role.get("kind") not in self.roles:
            errors.append(FieldError.not_supported(_ROLE.child("kind"), role.get("kind", ""), self.roles))
        if not role.get("name"):
            errors.append(FieldError.required(_ROLE.child("name")))
        else:
            errors += checked(names.name_is_path_segment, role["name"], _ROLE.child("name"))
        for i, subject in enumerate(obj.get("subjects") or ()):
            errors += self._subject(subject, Path("subjects").index(i))
        return errors

    def _subject(self, subject: Json, path: Path) -> list[FieldError]:
        name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
        errors = [] if name else [FieldError.required(path.child("name"))]
        if kind == "ServiceAccount":
            if name:
                errors += checked(names.name_is_dns_subdomain, name, path.child("name"))
            if group:
                errors.append(FieldError.not_supported(path.child("apiGroup"), group, [""]))
            if not self.namespaced and not subject.get("namespace"):
                errors.append(FieldError.required(path.child("namespace")))
        elif kind in ("User", "Group"):
            if group != _GROUP:
                errors.append(FieldError.not_supported(path.child("apiGroup"), group, [_GROUP]))
        else:
            errors.append(FieldError.not_supported(path.child("kind"), kind, ["ServiceAccount", "User", "Group"]))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = self.validate(new)
        if new.get("roleRef") != old.get("roleRef"):
            role = as_internal("rbac.v1.RoleRef", new.get("roleRef") or {})
            errors.append(FieldError.invalid(_ROLE, role, "cannot change roleRef"))
        return errors


class ClusterRoleBinding(RoleBinding):
    namespaced = False
    roles = ("ClusterRole",)


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "roles"): Role(),
    (_GROUP, "clusterroles"): ClusterRole(),
    (_GROUP, "rolebindings"): RoleBinding(),
    (_GROUP, "clusterrolebindings"): ClusterRoleBinding(),
}
