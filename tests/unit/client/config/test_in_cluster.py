"""The configuration of a Pod."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.client.http.certificates import authority

from ostinato.client.config import in_cluster
from ostinato.client.config.error import ConfigError, NotInCluster

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(authority().pem)
    (tmp_path / "namespace").write_text(" apps \n")
    return tmp_path


def test_a_pod_has_the_server_token_authority_and_namespace_of_its_cluster(directory: Path) -> None:
    config = in_cluster.config(ENVIRON, directory)
    assert config.url == "https://10.0.0.1:443"
    assert config.token_file == directory / "token"
    assert config.tls.ca_file == directory / "ca.crt"
    assert config.namespace == "apps"
    assert not config.environment_proxies
    assert in_cluster.is_possible(ENVIRON, directory)


def test_an_address_of_ipv6_is_put_in_brackets(directory: Path) -> None:
    config = in_cluster.config({**ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}, directory)
    assert config.url == "https://[fd00::1]:443"


@pytest.mark.parametrize("missing", ENVIRON)
def test_outside_of_a_pod_the_error_is_a_distinct_one(missing: str, directory: Path) -> None:
    environ = {**ENVIRON, missing: ""}
    assert not in_cluster.is_possible(environ, directory)
    with pytest.raises(NotInCluster, match="unable to load in-cluster configuration"):
        in_cluster.config(environ, directory)


def test_a_missing_token_is_fatal(directory: Path) -> None:
    (directory / "token").unlink()
    assert not in_cluster.is_possible(ENVIRON, directory)
    with pytest.raises(ConfigError, match=r"token: cannot be read: No such file.*automountServiceAccountToken"):
        in_cluster.config(ENVIRON, directory)


@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_a_bad_authority_is_only_logged(
    content: bytes | None, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (directory / "ca.crt").unlink()
    if content is not None:
        (directory / "ca.crt").write_bytes(content)
    assert in_cluster.config(ENVIRON, directory).tls.ca_file is None
    assert "expected to load root CA config from" in caplog.text


def test_the_namespace_is_that_of_the_environment_then_of_the_file_then_default(directory: Path) -> None:
    assert in_cluster.config({**ENVIRON, "POD_NAMESPACE": "other"}, directory).namespace == "other"
    (directory / "namespace").write_text(" \n")
    assert in_cluster.config(ENVIRON, directory).namespace == "default"
    (directory / "namespace").unlink()
    assert in_cluster.config(ENVIRON, directory).namespace == "default"
