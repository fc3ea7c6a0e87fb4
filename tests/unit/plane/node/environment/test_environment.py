"""Environment variables: references, downward API, ConfigMaps, Secrets, files and Services."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import (
    ConfigMap,
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    Container,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    FileKeySelector,
    ObjectFieldSelector,
    Pod,
    PodSpec,
    ResourceFieldSelector,
    ResourceRequirements,
    Secret,
    SecretEnvSource,
    SecretKeySelector,
    Service,
    ServicePort,
    ServiceSpec,
)
from ostinato.plane.node.environment.downward_api import FieldError, field_of, resource_of
from ostinato.plane.node.environment.env_files import EnvFileError, value_in
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.environment.service_variables import service_variables
from ostinato.plane.node.environment.variables import PodFacts, environment_of
from ostinato.plane.node.runtimes import StartError


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("$(A)", "one"),
        ("<$(A)$(B)>", "<onetwo>"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$(NONE)", "$(NONE)"),
        ("$A $(A $", "$A $(A $"),
        ("$", "$"),
        ("$()", "$()"),
        ("a$b", "a$b"),
    ],
)
def test_known_references_are_expanded(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "B": "two"}) == expanded


def test_unknown_references_are_collected() -> None:
    missing: list[str] = []
    expand("$(A)$(NONE)$(OTHER)", {"A": ""}, missing)
    assert missing == ["NONE", "OTHER"]


POD = Pod(
    metadata=ObjectMeta(
        name="p", namespace="n", uid="u", labels={"tier": "front", "a/b": "c"}, annotations={"note": 'two "words"\n'}
    ),
    spec=PodSpec(
        node_name="node",
        service_account_name="builder",
        containers=[
            Container(
                name="c",
                resources=ResourceRequirements(
                    requests={"cpu": Quantity("20m"), "memory": Quantity("20Mi")}, limits={"memory": Quantity("96Mi")}
                ),
            ),
            Container(name="d", resources=ResourceRequirements(requests={"memory": Quantity("10Mi")})),
        ],
    ),
)
KNOWN = PodFacts(
    ["192.0.2.1"], ["10.0.0.9"], {"cpu": Quantity("4"), "memory": Quantity("8Gi")}, {"WEB_PORT": "tcp://x"}
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.uid", "u"),
        ("metadata.labels['a/b']", "c"),
        ("metadata.labels['none']", ""),
        ("metadata.labels", 'a/b="c"\ntier="front"'),
        ("metadata.annotations", 'note="two \\"words\\"\\n"'),
        ("spec.nodeName", "node"),
        ("spec.serviceAccountName", "builder"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,fd00::1"),
        ("status.podIP", "10.0.0.9"),
        ("status.podIPs", "10.0.0.9,fd00::9"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    hosts, pods = ["192.0.2.1", "fd00::1"], ["10.0.0.9", "fd00::9"]
    assert field_of(POD, ObjectFieldSelector(field_path=path), hosts, pods) == value


def test_an_unsupported_field_is_named() -> None:
    with pytest.raises(FieldError, match=r"spec\.secret"):
        field_of(POD, ObjectFieldSelector(field_path="spec.secret"), [], [])


@pytest.mark.parametrize(
    ("resource", "divisor", "container", "value"),
    [
        ("requests.cpu", None, None, "1"),
        ("requests.cpu", "1m", None, "20"),
        ("requests.memory", "1Mi", None, "20"),
        ("limits.memory", "0", None, "100663296"),
        ("limits.cpu", None, None, "4"),
        ("requests.memory", "1k", "d", "10486"),
        ("requests.cpu", None, "d", "0"),
    ],
)
def test_resources_of_containers_are_rounded_up(
    resource: str, divisor: str | None, container: str | None, value: str
) -> None:
    asked = ResourceFieldSelector(
        resource=resource, divisor=None if divisor is None else Quantity(divisor), container_name=container
    )
    assert resource_of(POD, asked, "c", KNOWN.allocatable) == value


class Objects:
    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        assert namespace == "n"
        return ConfigMap(data={"colour": "red", "SIZE": "7"}) if name == "settings" else None

    async def secret(self, namespace: str, name: str) -> Secret | None:
        assert namespace == "n"
        return Secret(data={"password": b"s3 cret"}) if name == "secrets" else None


def variables(container: Container) -> dict[str, str]:
    return asyncio.run(environment_of(POD, container, Objects(), KNOWN))


def test_the_last_value_of_a_repeated_name_wins_but_references_see_earlier_ones() -> None:
    env = [
        EnvVar(name="A", value="one"),
        EnvVar(name="B", value="<$(A)> $(LATER)"),
        EnvVar(name="A", value="again"),
        EnvVar(name="LATER", value="$(WEB_PORT)"),
    ]
    found = variables(Container(name="c", env=env))
    assert found == {"WEB_PORT": "tcp://x", "A": "again", "B": "<one> $(LATER)", "LATER": "tcp://x"}


def test_values_of_config_maps_and_secrets() -> None:
    found = variables(
        Container(
            name="c",
            env_from=[
                EnvFromSource(config_map_ref=ConfigMapEnvSource(name="settings")),
                EnvFromSource(prefix="S_", secret_ref=SecretEnvSource(name="secrets")),
                EnvFromSource(config_map_ref=ConfigMapEnvSource(name="none", optional=True)),
            ],
            env=[
                EnvVar(name="SIZE", value="8"),
                EnvVar(name="BOTH", value="$(colour) $(S_password)"),
                EnvVar(name="WEB_PORT", value="mine"),
                _from(secret_key_ref=SecretKeySelector(name="secrets", key="password")),
            ],
        )
    )
    assert found == {
        "colour": "red",
        "SIZE": "8",
        "S_password": "s3 cret",
        "BOTH": "red s3 cret",
        "WEB_PORT": "mine",
        "X": "s3 cret",
    }


def _from(**source: object) -> EnvVar:
    return EnvVar(name="X", value_from=EnvVarSource(**source))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (
            Container(name="c", env=[_from(config_map_key_ref=ConfigMapKeySelector(name="none", key="k"))]),
            'configmap "none" not found',
        ),
        (
            Container(name="c", env=[_from(config_map_key_ref=ConfigMapKeySelector(name="settings", key="k"))]),
            "couldn't find key k in ConfigMap n/settings",
        ),
        (
            Container(name="c", env=[_from(secret_key_ref=SecretKeySelector(name="secrets", key="k"))]),
            "couldn't find key k in Secret n/secrets",
        ),
        (
            Container(name="c", env_from=[EnvFromSource(secret_ref=SecretEnvSource(name="none"))]),
            'secret "none" not found',
        ),
    ],
)
def test_missing_required_objects_and_keys_are_reported(container: Container, message: str) -> None:
    with pytest.raises(StartError) as caught:
        variables(container)
    assert (caught.value.reason, str(caught.value)) == ("CreateContainerConfigError", message)


FILE = """# a comment
  A='one' # and another
B='two
lines'
C= 'nothing'
D='it has = and # in it'
"""


@pytest.mark.parametrize(
    ("key", "value"), [("A", "one"), ("B", "two\nlines"), ("C", ""), ("D", "it has = and # in it"), ("E", "")]
)
def test_values_of_files(key: str, value: str) -> None:
    assert value_in(FILE.encode(), key) == value


@pytest.mark.parametrize("text", ["A", "A ='x'", "='x'", "A=x", "A='x", "A='x' y"])
def test_malformed_env_files_are_rejected(text: str) -> None:
    with pytest.raises(EnvFileError, match="at line 1"):
        value_in(text.encode(), "A")


def test_a_file_variable_is_read_from_inside_its_volume_only(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text(FILE)
    (tmp_path / "secret").write_text("A='secret'")
    known = msgspec.structs.replace(KNOWN, volumes={"v": tmp_path / "volume"})

    def value(path: str, key: str = "A", volume: str = "v") -> str | None:
        asked = _from(file_key_ref=FileKeySelector(volume_name=volume, path=path, key=key))
        found = asyncio.run(environment_of(POD, Container(name="c", env=[asked]), Objects(), known))
        return found.get("X")

    assert value("file") == "one"
    for path, key, volume in (("../secret", "A", "v"), ("none", "A", "v"), ("file", "E", "v"), ("file", "A", "w")):
        with pytest.raises(StartError):
            value(path, key, volume)


def test_services_with_a_cluster_ip_have_variables() -> None:
    ports = [ServicePort(name="http", port=80), ServicePort(name="alt-port", port=9090, protocol="UDP")]
    services = [
        Service(metadata=ObjectMeta(name="web-app"), spec=ServiceSpec(cluster_ip="10.96.0.5", ports=ports)),
        Service(metadata=ObjectMeta(name="headless"), spec=ServiceSpec(cluster_ip="None", ports=ports)),
    ]
    assert service_variables(services) == {
        "WEB_APP_SERVICE_HOST": "10.96.0.5",
        "WEB_APP_SERVICE_PORT": "80",
        "WEB_APP_SERVICE_PORT_HTTP": "80",
        "WEB_APP_SERVICE_PORT_ALT_PORT": "9090",
        "WEB_APP_PORT": "tcp://10.96.0.5:80",
        "WEB_APP_PORT_80_TCP": "tcp://10.96.0.5:80",
        "WEB_APP_PORT_80_TCP_PROTO": "tcp",
        "WEB_APP_PORT_80_TCP_PORT": "80",
        "WEB_APP_PORT_80_TCP_ADDR": "10.96.0.5",
        "WEB_APP_PORT_9090_UDP": "udp://10.96.0.5:9090",
        "WEB_APP_PORT_9090_UDP_PROTO": "udp",
        "WEB_APP_PORT_9090_UDP_PORT": "9090",
        "WEB_APP_PORT_9090_UDP_ADDR": "10.96.0.5",
    }
