"""RBAC rule resolution: the rules that role bindings give to a user.

Rules are resolved with a user's first request and cached until a role or binding of the scope changes: a cached request
reads no role. Only durable objects count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.decision import Decision
from ostinato.server.access.authorization.rules import Rule
from ostinato.server.request import User

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.store.collection import Collection
    from ostinato.server.store.records import Event

GROUP = "rbac.authorization.k8s.io"
CACHED_USERS = 10_000  # maximum number of cached (user, namespace) pairs
LONGEST_CACHED = 2048  # maximum length of a cached user's name and groups
CACHED_ATTRIBUTES = 100  # maximum number of attributes cached per user
_LONGEST_NAMESPACE = 63  # of a namespace that can exist; longer ones are not cached

Json = dict[str, Any]
RoleName = tuple[str, str]  # kind in lower case, name


class UserRules:
    """The rules of a user from the bindings of a scope, each with its decision."""

    __slots__ = ("_concerned", "missing", "rules")

    def __init__(self) -> None:
        self.rules: list[tuple[Rule, Decision]] = []
        self.missing: list[RoleName] = []  # bound roles that do not exist
        # Matching rules by (verb, group, resource, subresource) of earlier requests.
        self._concerned: dict[tuple[Any, ...], list[tuple[Rule, Decision]]] = {}

    def decide(self, attributes: RequestAttributes) -> Decision | None:
        """The decision of the first rule that allows the attributes; None if no rule does."""
        if attributes.path is not None:
            return next((decision for rule, decision in self.rules if rule.concerns(attributes)), None)
        question = attributes[:4]
        found = self._concerned.get(question)
        if found is None:
            found = [each for each in self.rules if each[0].concerns(attributes)]
            if found:  # misses are not cached: their attributes are unbounded
                if len(self._concerned) >= CACHED_ATTRIBUTES:
                    self._concerned.clear()
                self._concerned[question] = found
        for rule, decision in found:
            if rule.names(attributes.name):
                return decision
        return None


class _Binding(NamedTuple):
    kind: str
    name: str
    namespace: str
    role: Json
    subjects: list[Json]

    def subject_of(self, user: User) -> Json | None:
        """The first subject that matches the user."""
        for subject in self.subjects:
            kind, name = subject["kind"], subject["name"]
            if kind == "User":
                found = name == user.name
            elif kind == "Group":
                found = name in user.groups
            else:
                found = user.name == f"system:serviceaccount:{self._namespace_of(subject)}:{name}"
            if found:
                return subject
        return None

    def _namespace_of(self, account: Json) -> str:
        namespace: str = account.get("namespace") or self.namespace
        return namespace

    def granting(self, subject: Json) -> Decision:
        """The decision for a rule of the role and a subject."""
        name = subject["name"]
        if subject["kind"] == "ServiceAccount":
            name = f"{name}/{self._namespace_of(subject)}"
        own = f"{self.name}/{self.namespace}" if self.namespace else self.name
        role = f"{self.role['kind']} {quote(self.role['name'])}"
        described = f"{self.kind} {quote(own)} of {role} to {subject['kind']} {quote(name)}"
        return Decision(allowed=True, reason=f"RBAC: allowed by {described}")


class Roles:
    def __init__(self, registry: Registry) -> None:
        names = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
        self._collections = {name: _collection(registry, name) for name in names}
        self._listening = False
        # By namespace; "" for cluster-wide bindings.
        self._held: dict[str, dict[tuple[str, tuple[str, ...]], UserRules]] = {}  # by the user's name and groups
        self._bindings: dict[str, list[_Binding]] = {}
        self._rules: dict[str, dict[str, list[Rule]]] = {}  # by the role's name
        self._count = 0  # upper bound of the entries in `_held`

    def held(self, user: User, namespace: str) -> UserRules:
        """The rules of a user from the bindings of a namespace, or from cluster role bindings ("")."""
        known = self._held.get(namespace)
        found = known.get((user.name, user.groups)) if known is not None else None
        return self._find(user, namespace) if found is None else found

    def of(self, reference: Json, namespace: str) -> list[Rule] | None:
        """The rules of the role that a binding references; None if it does not exist."""
        self._listen()
        name = reference["name"]
        scope = namespace if reference["kind"] == "Role" else ""
        known = self._rules.setdefault(scope, {})
        if name not in known:
            key, kind = (f"{scope}/{name}", "roles") if reference["kind"] == "Role" else (name, "clusterroles")
            entry = self._collections[kind].entries.get(key)
            if entry is None:
                return None
            known[name] = [Rule(raw) for raw in msgspec.json.decode(entry.data).get("rules") or ()]
        return known[name]

    def _find(self, user: User, namespace: str) -> UserRules:
        self._listen()
        found = UserRules()
        if len(namespace) > _LONGEST_NAMESPACE:
            return found
        for binding in self._of_scope(namespace):
            subject = binding.subject_of(user)
            if subject is None:
                continue
            rules = self.of(binding.role, namespace)
            if rules is None:
                found.missing.append((binding.role["kind"].lower(), binding.role["name"]))
            else:
                decision = binding.granting(subject)
                found.rules.extend((rule, decision) for rule in rules)
        if len(user.name) + sum(map(len, user.groups)) > LONGEST_CACHED:
            return found
        if self._count >= CACHED_USERS:
            self._forget()
        self._count += 1
        self._held.setdefault(namespace, {})[user.name, user.groups] = found
        return found

    def _of_scope(self, namespace: str) -> list[_Binding]:
        bindings = self._bindings.get(namespace)
        if bindings is None:
            kind, prefix = ("RoleBinding", f"{namespace}/") if namespace else ("ClusterRoleBinding", "")
            entries = self._collections[f"{kind.lower()}s"].select(prefix)
            bindings = self._bindings[namespace] = [_binding(kind, entry.data) for entry in entries]
        return bindings

    # Cache invalidation

    def _listen(self) -> None:
        """Subscribe with the first lookup: many servers only have requests of system:masters."""
        if self._listening:
            return
        self._listening = True
        for name, collection in self._collections.items():
            collection.hub.listen(self._cluster if name.startswith("cluster") else self._namespace)

    def _cluster(self, event: Event) -> None:
        self._forget()  # role bindings reference cluster roles too

    def _namespace(self, event: Event) -> None:
        namespace = event.key.partition("/")[0]
        for kept in (self._held, self._bindings, self._rules):
            kept.pop(namespace, None)

    def _forget(self) -> None:
        for kept in (self._held, self._bindings, self._rules):
            kept.clear()
        self._count = 0


def _collection(registry: Registry, name: str) -> Collection:
    resource = registry.get(GROUP, "v1", name)
    assert resource is not None
    assert resource.collection is not None
    return resource.collection


def _binding(kind: str, data: bytes) -> _Binding:
    obj = msgspec.json.decode(data)
    metadata = obj["metadata"]
    return _Binding(kind, metadata["name"], metadata.get("namespace", ""), obj["roleRef"], obj.get("subjects") or [])
