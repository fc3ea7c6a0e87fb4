"""CRI configurations of sandboxes and containers."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.api.protobuf.encoding import write_message
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import (
    AppArmorProfile,
    Capabilities,
    Container,
    ContainerPort,
    Lifecycle,
    Pod,
    PodSecurityContext,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SeccompProfile,
    SecurityContext,
    Sysctl,
)
from ostinato.plane.node.runtimes import Launch, Mount
from ostinato.plane.node.runtimes.containerd.configs import (
    SandboxNames,
    container_config,
    resources,
    sandbox_config,
)
from ostinato.plane.node.runtimes.containerd.security import container_security, namespaces, non_root_violation

GIB = 1 << 30
IMAGE = {"id": "sha256:1"}


def pod(container: Container | None = None, qos: str = "BestEffort", **spec: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns", uid="u", labels={"app": "x"}),
        spec=PodSpec(containers=[container or Container(name="c")], **spec),
        status=PodStatus(qos_class=qos),
    )


def amounts(**given: str) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in given.items()}


# SandboxManager


def test_a_sandbox_is_found_again_by_its_labels() -> None:
    config = sandbox_config(pod(), 2, SandboxNames(), Path("/logs/p"))
    assert config["metadata"] == {"name": "p", "namespace": "ns", "uid": "u", "attempt": 2}
    assert config["labels"] == {
        "app": "x",
        "io.kubernetes.pod.name": "p",
        "io.kubernetes.pod.namespace": "ns",
        "io.kubernetes.pod.uid": "u",
    }
    assert config["log_directory"] == "/logs/p"
    assert write_message("runtime.v1.PodSandboxConfig", config)


def test_ports_of_the_host_and_kernel_settings_belong_to_the_sandbox() -> None:
    ports = [ContainerPort(container_port=80, host_port=8080, protocol="UDP"), ContainerPort(container_port=81)]
    context = PodSecurityContext(sysctls=[Sysctl(name="net.core.somaxconn", value="9")])
    config = sandbox_config(pod(Container(name="c", ports=ports), security_context=context), 0, SandboxNames())
    assert config["port_mappings"] == [{"protocol": 1, "container_port": 80, "host_port": 8080, "host_ip": ""}]
    assert config["linux"]["sysctls"] == {"net.core.somaxconn": "9"}


@pytest.mark.parametrize(
    ("spec", "network", "pid", "ipc"),
    [
        ({}, 0, 1, 0),
        ({"host_network": True, "host_pid": True, "host_ipc": True}, 2, 2, 2),
        ({"share_process_namespace": True}, 0, 0, 0),
    ],
)
def test_namespaces_are_the_pods_the_containers_or_the_nodes(
    spec: dict[str, Any], network: int, pid: int, ipc: int
) -> None:
    assert namespaces(pod(**spec)) == {"network": network, "pid": pid, "ipc": ipc}


# Containers


def launch(container: Container, **given: Any) -> Launch:
    return Launch(pod=pod(container), container=container, attempt=3, **given)


def test_a_launch_request_becomes_a_container_config() -> None:
    container = Container(
        name="c", image="busybox:1", working_dir="/w", stdin=True, tty=True, lifecycle=Lifecycle(stop_signal="SIGUSR1")
    )
    config = container_config(
        launch(
            container,
            command=["sh"],
            arguments=["-c", "true"],
            environment={"A": "ä"},
            mounts=[Mount(Path("/from"), "/to", read_only=True)],
            log=Path("/logs/p/c/3.log"),
        ),
        IMAGE,
        None,
        GIB,
    )
    assert config["metadata"] == {"name": "c", "attempt": 3}
    assert config["image"] == {"image": "sha256:1", "user_specified_image": "busybox:1"}
    assert (config["command"], config["args"], config["working_dir"]) == (["sh"], ["-c", "true"], "/w")
    assert config["envs"] == [{"key": "A", "value": b64encode("ä".encode()).decode()}]
    assert config["mounts"] == [{"container_path": "/to", "host_path": "/from", "readonly": True}]
    assert config["log_path"] == "c/3.log"
    assert (config["stdin"], config["tty"], config["stop_signal"]) == (True, True, 29)
    assert config["labels"]["io.kubernetes.container.name"] == "c"
    assert write_message("runtime.v1.ContainerConfig", config)


@pytest.mark.parametrize(
    ("own", "qos", "expected"),
    [
        (ResourceRequirements(), "BestEffort", {"cpu_shares": 2, "oom_score_adj": 1000}),
        (
            ResourceRequirements(requests=amounts(cpu="250m", memory="512Mi"), limits=amounts(memory="1Gi")),
            "Burstable",
            {"cpu_shares": 256, "memory_limit_in_bytes": GIB, "oom_score_adj": 500},
        ),
        (
            ResourceRequirements(limits=amounts(cpu="1500m", memory="1Mi")),
            "Guaranteed",
            {"cpu_shares": 1536, "cpu_quota": 150_000, "memory_limit_in_bytes": 1 << 20, "oom_score_adj": -997},
        ),
        (
            ResourceRequirements(limits=amounts(cpu="1m")),
            "Burstable",
            {"cpu_shares": 2, "cpu_quota": 1000, "oom_score_adj": 999},
        ),
    ],
)
def test_resources_become_shares_quotas_and_limits(
    own: ResourceRequirements, qos: str, expected: dict[str, int]
) -> None:
    container = Container(name="c", resources=own)
    assert resources(pod(container, qos), container, GIB) == {"cpu_period": 100_000, **expected}


def test_a_mounted_image_is_named_by_its_id() -> None:
    whole = Mount(Path(), "/models", read_only=True, image="sha256:1")
    part = Mount(Path(), "/part", sub_path="a/b", image="x")
    container = Container(name="c")
    launch = Launch(pod=Pod(spec=PodSpec(containers=[container])), container=container, attempt=0, mounts=[whole, part])
    assert container_config(launch, IMAGE, None, 0)["mounts"] == [
        {"container_path": "/models", "image": {"image": "sha256:1"}, "readonly": True},
        {"container_path": "/part", "image": {"image": "x"}, "readonly": True, "image_sub_path": "a/b"},
    ]


def test_a_container_has_its_own_user_else_that_of_its_pod_else_that_of_its_image() -> None:
    shared = PodSecurityContext(run_as_user=1, run_as_group=2, fs_group=3, supplemental_groups=[4])
    own = Container(name="c", security_context=SecurityContext(run_as_user=0))
    config = container_security(pod(own, security_context=shared), own, IMAGE, None)
    assert config["run_as_user"] == {"value": 0}
    assert config["run_as_group"] == {"value": 2}
    assert config["supplemental_groups"] == [3, 4]
    plain = Container(name="c")
    assert container_security(pod(plain, security_context=shared), plain, IMAGE, None)["run_as_user"] == {"value": 1}
    assert container_security(pod(), plain, {**IMAGE, "uid": {"value": 9}}, None)["run_as_user"] == {"value": 9}
    assert container_security(pod(), plain, {**IMAGE, "username": "web"}, None)["run_as_username"] == "web"


def test_capabilities_and_restrictions_are_passed_on() -> None:
    context = SecurityContext(
        capabilities=Capabilities(add=["NET_ADMIN"], drop=["ALL"]),
        read_only_root_filesystem=True,
        allow_privilege_escalation=False,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
    container = Container(name="c", security_context=context)
    config = container_security(pod(container), container, IMAGE, None)
    assert config["capabilities"] == {"add_capabilities": ["NET_ADMIN"], "drop_capabilities": ["ALL"]}
    assert (config["readonly_rootfs"], config["no_new_privs"], config["privileged"]) == (True, True, False)
    assert config["seccomp"] == {"profile_type": 0}
    assert "/proc/kcore" in config["masked_paths"]
    open_ = Container(name="c", security_context=SecurityContext(proc_mount="Unmasked"))
    assert container_security(pod(open_), open_, IMAGE, None)["masked_paths"] == []


def test_profiles_of_the_kernel_are_those_of_the_container_else_of_its_pod() -> None:
    shared = PodSecurityContext(
        seccomp_profile=SeccompProfile(type="Localhost", localhost_profile="a/b.json"),
        app_armor_profile=AppArmorProfile(type="Localhost", localhost_profile="strict"),
    )
    container = Container(name="c")
    config = container_security(pod(container, security_context=shared), container, IMAGE, None)
    assert config["seccomp"] == {"profile_type": 2, "localhost_ref": "/var/lib/kubelet/seccomp/a/b.json"}
    assert config["apparmor"] == {"profile_type": 2, "localhost_ref": "strict"}
    plain = container_security(pod(container), container, IMAGE, None)
    assert (plain["seccomp"], plain["apparmor"]) == ({"profile_type": 1}, None)


def test_an_ephemeral_container_sees_the_processes_of_its_target() -> None:
    config = container_security(pod(), Container(name="d"), IMAGE, "target")
    assert config["namespace_options"] == {"network": 0, "pid": 3, "ipc": 0, "target_id": "target"}
    shared = container_security(pod(share_process_namespace=True), Container(name="d"), IMAGE, "target")
    assert shared["namespace_options"]["pid"] == 0


@pytest.mark.parametrize(
    ("own", "image", "why"),
    [
        (SecurityContext(run_as_user=0), {}, "container's runAsUser breaks non-root policy"),
        (SecurityContext(run_as_user=5), {}, None),
        (None, {}, "container has runAsNonRoot and image will run as root"),
        (None, {"uid": {"value": 7}}, None),
        (None, {"username": "web"}, "image has non-numeric user (web), cannot verify user is non-root"),
        (SecurityContext(run_as_non_root=False), {}, None),
    ],
)
def test_run_as_non_root_rejects_root(own: SecurityContext | None, image: dict[str, Any], why: str | None) -> None:
    container = Container(name="c", security_context=own)
    violation = non_root_violation(
        pod(container, security_context=PodSecurityContext(run_as_non_root=True)), container, image
    )
    if why is None:
        assert violation is None
    else:
        assert violation is not None
        assert why in violation
        assert violation.endswith('(pod: "p_ns(u)", container: c)')
