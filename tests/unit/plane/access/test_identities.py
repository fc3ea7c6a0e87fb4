"""No component is an administrator: each has an identity with limited permissions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stage.server import started_server

from ostinato.client.transport.protocol import Request
from ostinato.manager import Manager
from ostinato.plane import scheduler
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import CONTROLLERS, Options, add_controllers
from ostinato.plane.network import services
from ostinato.server.controllers.bootstrap import _table
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation


def parts(tmp_path: Path) -> list[str]:
    """Names of all runnables of a plane."""
    options = Options(ca_certificate=tmp_path / "ca.crt", ca_key=tmp_path / "ca.key", volumes=tmp_path, csi=(tmp_path,))
    (tmp_path / "ca.crt").write_text("")
    (tmp_path / "ca.key").write_text("")
    manager = Manager(connect=lambda _: InProcessTransport(Server(Simulation(seed=1), MemoryLog())))
    add_controllers(manager, options)
    scheduler.add_to(manager)
    services.add_to(manager, tmp_path)
    return [each.name for each in manager.runnables]


def test_every_component_has_an_identity(tmp_path: Path) -> None:
    names = parts(tmp_path)
    assert len(names) >= len(CONTROLLERS)
    for name in names:
        user, groups = identities.user_and_groups(identities.user_of_runnable(name) or identities.MANAGER)
        assert user.startswith("system:")
        assert "system:masters" not in groups


def test_every_service_account_of_a_controller_is_bound_to_a_role(tmp_path: Path) -> None:
    bound = {
        subject["name"]
        for each in _table()
        if each["kind"] in ("ClusterRoleBinding", "RoleBinding")
        for subject in each.get("subjects", ())
        if subject["kind"] == "ServiceAccount"
    }
    prefix = "system:serviceaccount:kube-system:"
    accounts = {identities.user_of_runnable(name) for name in parts(tmp_path)}
    own = {each.removeprefix(prefix) for each in accounts if each.startswith(prefix)}
    assert own - bound <= {"default-storage-class", "ostinato-csi"}
    assert roles.RULES.keys() | roles.CSI_RULES.keys() <= own


def test_additional_rules_only_allow_patching_what_may_be_updated() -> None:
    """Additional permissions are listed here, so that they do not grow unnoticed."""
    known = {each["metadata"]["name"]: each for each in _table() if each["kind"] == "ClusterRole"}
    others: set[tuple[str, str, str]] = set()
    for account, rules in roles.RULES.items():
        shipped = known.get(f"system:controller:{account}", {}).get("rules", ())
        for rule in rules:
            for resource in rule.resources:
                may_update = any(
                    "update" in each["verbs"]
                    and rule.api_groups[0] in each["apiGroups"]
                    and resource in each["resources"]
                    for each in shipped
                )
                if rule.verbs != ["patch"] or not may_update:
                    others.add((account, ",".join(rule.verbs), resource))
    assert others == {
        ("certificate-controller", "approve", "signers"),
        ("certificate-controller", "get", "nodes"),
        ("default-storage-class", "create", "storageclasses"),
        ("legacy-service-account-token-cleaner", "get", "secrets"),
        ("legacy-service-account-token-cleaner", "get", "serviceaccounts"),
        ("legacy-service-account-token-cleaner", "list", "pods"),
        ("root-ca-cert-publisher", "get", "configmaps"),
        ("service-account-controller", "get", "serviceaccounts"),
        ("validatingadmissionpolicy-status-controller", "list", "customresourcedefinitions"),
    }


def test_rules_for_volumes_of_csi_drivers_are_those_of_their_sidecars() -> None:
    """They are granted with --csi-socket alone."""
    granted = {
        (resource, ",".join(rule.verbs))
        for rules in roles.CSI_RULES.values()
        for rule in rules
        for resource in rule.resources
    }
    assert not roles.CSI_RULES.keys() & roles.RULES.keys()
    assert granted == {
        ("persistentvolumes", "get,list,watch,create,patch,delete"),
        ("persistentvolumeclaims", "get,list,watch,patch"),
        ("persistentvolumeclaims/status", "patch"),
        ("nodes", "get,list,watch"),
        ("secrets", "get"),
        ("events", "create,patch,update"),
        ("storageclasses", "get,list,watch"),
        ("csinodes", "get,list,watch"),
        ("volumeattachments", "get,list,watch,patch"),
        ("volumeattachments/status", "patch"),
    }


@pytest.mark.parametrize(
    ("identity", "method", "path"),
    [
        ("deployment-controller", "GET", "/api/v1/namespaces/kube-system/secrets"),
        ("deployment-controller", "DELETE", "/api/v1/namespaces/default"),
        ("replicaset-controller", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        ("job-controller", "GET", "/api/v1/nodes/n1"),
        ("root-ca-cert-publisher", "GET", "/api/v1/namespaces/kube-system/configmaps/other"),
    ],
)
def test_a_compromised_controller_is_limited_to_its_role(identity: str, method: str, path: str) -> None:
    world = Simulation(seed=1)

    async def main() -> int:
        async with started_server(world) as server:
            user, groups = identities.user_and_groups(f"system:serviceaccount:kube-system:{identity}")
            transport = InProcessTransport(server, user=(user, groups))
            answer = await transport.request(Request(method, path, body=b"{}" if method == "POST" else b""))
            code = answer.status
            await transport.close()
        return code

    assert world.run(main()) == 403
