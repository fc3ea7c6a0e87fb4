"""Kubeconfig: files, merging, contexts, and where a configuration is looked for."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from ostinato.client.config import in_cluster, kubeconfig
from ostinato.client.config.config import Config
from ostinato.client.config.contexts import config_of
from ostinato.client.config.error import ConfigError, NoConfig
from ostinato.client.config.exec_policy import ExecPolicy
from ostinato.client.config.secret import Secret

GO: dict[str, Any] = json.loads((Path(__file__).parents[3] / "data" / "client" / "go_answers.json").read_text())

# Where this is stricter than Go on purpose: Go goes on as nobody when a context names a user that is not there.
REFUSED_HERE = {"no such user"}


@pytest.mark.parametrize("case", GO["configs"], ids=lambda case: case["name"])
def test_a_context_makes_the_config_that_go_makes_of_it(case: dict[str, Any], tmp_path: Path) -> None:
    for name, content in case["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    listed = os.pathsep.join(str(tmp_path / name) if name else "" for name in case["list"])
    environ = {"KUBECONFIG": listed}
    if case.get("error") or case["name"] in REFUSED_HERE:
        with pytest.raises(ConfigError):
            Config.load(case["context"] or None, environ=environ)
        return
    config = Config.load(case["context"] or None, environ=environ)
    assert described(config, tmp_path) == {
        key: value for key, value in case.items() if key not in ("name", "files", "list", "context")
    }


def described(config: Config, directory: Path) -> dict[str, Any]:
    """A Config in the words of the recorded answers, without what is empty."""

    def relative(path: Path | None) -> str:
        return os.path.relpath(path, directory) if path else ""

    tls, who, plugin = config.tls, config.impersonate, config.exec_plugin
    secure = config.secure
    token = config.token.reveal() if config.token else ""
    if config.token_file and not token:
        token = config.token_file.read_text()
    found: dict[str, Any] = {
        "host": config.server,
        "namespace": config.namespace,
        "token": token if secure else "",
        "tokenFile": relative(config.token_file),
        "username": config.username,
        "password": config.password.reveal() if config.password else "",
        "caFile": relative(tls.ca_file),
        "caData": tls.ca_data.decode(),
        "certFile": relative(tls.certificate_file),
        "certData": tls.certificate_data.decode(),
        "keyFile": relative(tls.key_file),
        "keyData": tls.key_data.reveal() if tls.key_data else "",
        "insecure": tls.insecure and secure,
        "serverName": tls.server_name,
        "impersonate": who.user if who else "",
        "impersonateUid": who.uid if who else "",
        "impersonateGroups": list(who.groups) if who else [],
        "impersonateExtra": {key: list(values) for key, values in who.extra.items()} if who else {},
        "proxy": config.proxy.reveal() if config.proxy else "",
    }
    if plugin:
        command = plugin.command
        found["exec"] = {
            "command": f"DIR/{relative(Path(command))}" if os.path.isabs(command) else command,
            "args": list(plugin.args) or None,
            "env": [[name, value.reveal()] for name, value in plugin.env],
            "mode": plugin.interactive_mode,
            "hint": plugin.install_hint,
            "version": plugin.api_version,
            "clusterInfo": plugin.provide_cluster_info,
        }
    shown = {key: value for key, value in found.items() if value}
    shown["compression"] = config.compression
    if shown["host"] == "http://h:6443":
        shown["host"] = "h:6443"  # the recorded answer has it as it was written; both mean http
    return shown


def written(directory: Path, name: str = "config", **parts: Any) -> Path:
    """A kubeconfig with one context "x", changed by `cluster`, `user` and `context`."""
    content = {
        "clusters": [{"name": "c", "cluster": parts.get("cluster", {"server": "https://h"})}],
        "users": [{"name": "u", "user": parts.get("user", {"token": "t"})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **parts.get("context", {})}}],
        "current-context": "x",
    }
    path = directory / name
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"cluster": {}}, 'cluster "c": server: is missing; set it to the URL'),
        (
            {"cluster": {"server": "https://h:port"}},
            "cluster \"c\": server: 'https://h:port' is neither a URL nor host:port",
        ),
        ({"cluster": {"server": 1}}, 'cluster "c": server: must be a string; put it in quotes'),
        (
            {"cluster": {"server": "https://h", "insecure-skip-tls-verify": "yes"}},
            'cluster "c": insecure-skip-tls-verify: must be true or false',
        ),
        (
            {
                "cluster": {
                    "server": "https://h",
                    "insecure-skip-tls-verify": True,
                    "certificate-authority-data": "YQ==",
                }
            },
            'cluster "c": insecure-skip-tls-verify: specifying a root certificates file with the insecure flag',
        ),
        (
            {"cluster": {"server": "https://h", "certificate-authority-data": "s3cret!"}},
            'cluster "c": certificate-authority-data: is not base64; encode the PEM, or set a file in',
        ),
        (
            {"cluster": {"server": "https://h", "certificate-authority": "ca.crt"}},
            'cluster "c": certificate-authority: {dir}/ca.crt cannot be read: No such file or directory; correct',
        ),
        (
            {"cluster": {"server": "https://h", "proxy-url": "socks5://p"}},
            "proxy-url: socks5 proxies are not supported",
        ),
        ({"cluster": {"server": "https://h", "extensions": "x"}, "user": {"exec": {}}}, "extensions: must be a list"),
        ({"user": {"client-key": "k", "client-certificate": "c"}}, 'user "u": client-certificate: {dir}/c cannot be'),
        (
            {"user": {"client-certificate-data": "YQ=="}},
            'user "u": client-key: is missing; a client certificate requires',
        ),
        ({"user": {"token": "s3cret", "password": "s3cret"}}, 'user "u": token: is set together with username or'),
        ({"user": {"tokenFile": "tok"}}, 'user "u": tokenFile: {dir}/tok cannot be read'),
        (
            {"user": {"as-groups": ["a"]}},
            'user "u": as: is missing; as-uid, as-groups and as-user-extra require a user',
        ),
        ({"user": {"as": "a", "as-groups": "b"}}, 'user "u": as-groups: must be a list of strings'),
        ({"user": {"as": "a", "as-user-extra": {"k": "v"}}}, 'user "u": as-user-extra.k: must be a list of strings'),
        ({"user": {"as": "a", "as-user-extra": "v"}}, 'user "u": as-user-extra: must be an object'),
        ({"user": {"auth-provider": {"name": "gcp"}}}, 'user "u": auth-provider: is no longer supported by Kubernetes'),
        ({"user": {"exec": {}}}, 'user "u": exec.command: is missing; set it to'),
        (
            {"user": {"exec": {}}},
            "user \"u\": exec.interactiveMode: '' is not supported; use Never, IfAvailable, Always",
        ),
        ({"user": {"exec": {"command": "a", "env": ["x"]}}}, 'user "u": exec.env: must be a list of objects'),
        (
            {"user": {"exec": {"command": "a", "env": [{"value": "s3cret"}]}}},
            'user "u": exec.env[0].name: is missing; an environment variable requires a name',
        ),
        (
            {"context": {"cluster": "d"}},
            'context "x": cluster: cluster "d" does not exist; add it, or choose one of "c"',
        ),
        ({"context": {"cluster": ""}}, 'context "x": cluster: is missing; choose one of "c"'),
        ({"context": {"user": "v"}}, 'context "x": user: user "v" does not exist; add it, or choose one of "u"'),
        ({"context": {"namespace": "A_b"}}, 'context "x": namespace: "A_b" is not a valid namespace name'),
    ],
)
def test_a_problem_is_reported_with_file_entry_field_and_fix_and_without_secrets(
    parts: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = written(tmp_path, **parts)
    with pytest.raises(ConfigError) as caught:
        Config.load(path=path)
    assert f"{path}: {problem.format(dir=tmp_path)}" in str(caught.value) or problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("- a", "is not a kubeconfig; it must have clusters, users and contexts"),
        ("kind: Pod", "is not a kubeconfig: kind 'Pod', apiVersion 'v1'"),
        ("current-context: [1]", "current-context: must be a string"),
        ("clusters: 1", "clusters: must be a list of objects, each with name and cluster"),
        ("users: [1]", "users[0]: must be an object with name and user"),
        ("users: [{name: 1}]", "users[0].name: must be a string; put it in quotes"),
        ("contexts: [{name: a, context: b}]", 'contexts[0].context: of "a" must be an object'),
        (
            "users: [{name: a}, {name: a}]",
            'users[1].name: duplicate user "a" in this file; rename or remove one',
        ),
        ("{", "is neither YAML nor JSON"),
        (
            "users: [{name: u, user: {token: !!int s3cret}}]",
            "is neither YAML nor JSON: yaml: cannot decode !!str a value",
        ),
    ],
)
def test_an_invalid_file_is_reported_with_its_position(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        Config.load(path=path)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert "s3cret" not in str(caught.value)


def test_yaml_tags_of_python_objects_execute_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(f"users: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n")
    with pytest.raises(ConfigError):
        Config.load(path=path)
    assert not (tmp_path / "pwned").exists()


def test_a_file_above_the_size_limit_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "_MAX_FILE", 10)
    with pytest.raises(ConfigError, match="is larger than 10 bytes"):
        Config.load(path=written(tmp_path))


def test_invalid_files_do_not_prevent_others_from_being_read_and_are_reported(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{")
    (tmp_path / "other").write_text("[]")
    merged = kubeconfig.read([tmp_path / "broken", written(tmp_path), tmp_path / "other", tmp_path])
    assert list(merged.contexts) == ["x"]
    assert len(merged.errors) == 3
    with pytest.raises(ConfigError) as caught:
        config_of(merged)
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        str(tmp_path / "broken"),
        str(tmp_path / "other"),
        str(tmp_path),
    ]


def test_an_explicit_path_must_exist_and_is_used_alone(tmp_path: Path) -> None:
    other = written(tmp_path, "other", cluster={"server": "https://other"})
    environ = {"KUBECONFIG": str(other), "HOME": str(tmp_path)}
    assert Config.load(path=str(written(tmp_path)), environ=environ).server == "https://h"
    with pytest.raises(ConfigError, match="gone: does not exist"):
        Config.load(path=tmp_path / "gone", environ=environ)


def test_names_in_the_list_count_once_and_empty_ones_not_at_all() -> None:
    listed = os.pathsep.join(["a", "", "b", "a"])
    assert kubeconfig.split_list(listed) == [Path("a"), Path("b")]


def test_the_home_directory_is_looked_at_last(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", cluster={"server": "https://home"})
    other = written(tmp_path, "other", cluster={"server": "https://other"})
    assert Config.load(environ={"HOME": str(tmp_path)}).server == "https://home"
    assert Config.load(environ={"HOME": str(tmp_path), "KUBECONFIG": str(other)}).server == "https://other"
    assert Config.load("x", environ={"HOME": str(tmp_path)}).server == "https://home"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("pod-token")
    for function in (in_cluster.is_possible, in_cluster.config):
        monkeypatch.setattr(function, "__defaults__", (directory,))
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_the_service_account_is_used_by_default(tmp_path: Path, pod: dict[str, str]) -> None:
    (tmp_path / ".kube").mkdir()
    home = written(tmp_path / ".kube", cluster={"server": "https://home"})
    inside = {**pod, "HOME": str(tmp_path)}
    assert Config.load(environ=inside).server == "https://10.0.0.1:443"
    assert Config.load(environ={**inside, "KUBECONFIG": str(home)}).server == "https://home"
    assert Config.load("x", environ=inside).server == "https://home"
    assert Config.load(path=home, environ=inside).server == "https://home"


def test_files_of_the_list_that_are_all_missing_are_warned_of_and_lead_to_the_pod(
    pod: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    environ = {"KUBECONFIG": str(tmp_path / "gone"), "HOME": str(tmp_path)}
    assert Config.load(environ={**environ, **pod}).server == "https://10.0.0.1:443"
    assert "none of the files in $KUBECONFIG exists" in caplog.text
    with pytest.raises(NoConfig, match="are empty and this process does not run in a Pod"):
        Config.load(environ=environ)
    with pytest.raises(NoConfig, match="has no cluster"):
        Config.load("x", environ=environ)


def test_no_configuration_is_an_error_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(NoConfig, match="set KUBECONFIG to a kubeconfig, or run the embedded server"):
        Config.load(environ={"HOME": str(tmp_path)})
    with pytest.raises(NoConfig):
        Config.load(environ={})


def test_an_explicit_namespace_overrides_the_contexts(tmp_path: Path) -> None:
    path = written(tmp_path, context={"namespace": "a"})
    assert Config.load(path=path).namespace == "a"
    assert Config.load(path=path, namespace="b").namespace == "b"


def test_the_exec_policy_is_set_in_code(tmp_path: Path) -> None:
    plugin = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    path = written(tmp_path, user={"exec": {**plugin, "pluginPolicy": {"policyType": "AllowAll"}}})
    assert Config.load(path=path, exec_policy=ExecPolicy.deny_all()).exec_policy == ExecPolicy.deny_all()


def test_data_takes_precedence_over_the_file_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    both = {"server": "https://h", "certificate-authority": "gone", "certificate-authority-data": "YQ=="}
    config = Config.load(path=written(tmp_path, cluster=both))
    assert (config.tls.ca_file, config.tls.ca_data) == (None, b"a")
    assert "file and data are both set, using data" in caplog.text


def test_credentials_for_a_server_without_tls_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = Config.load(path=written(tmp_path, cluster={"server": "http://h"}))
    assert not config.secure
    assert "credentials not used, server is not https" in caplog.text


def test_the_extension_of_the_cluster_is_for_the_plugin(tmp_path: Path) -> None:
    extensions = [
        {"name": "other", "extension": 1},
        {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}},
    ]
    plugin = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    path = written(tmp_path, cluster={"server": "https://h", "extensions": extensions}, user={"exec": plugin})
    config = Config.load(path=path)
    assert config.exec_plugin is not None
    assert config.exec_plugin.cluster_config == {"a": 1}


def test_the_list_of_contexts_in_an_error_is_bounded(tmp_path: Path) -> None:
    contexts = [{"name": f"x{number}", "context": {}} for number in range(100)]
    path = tmp_path / "config"
    path.write_text(json.dumps({"contexts": contexts}))
    with pytest.raises(ConfigError, match=r'current-context: is not set; choose one of "x0".*"x9", …$'):
        Config.load(path=path)
    path.write_text(json.dumps({"current-context": "x"}))
    with pytest.raises(ConfigError, match='context "x" does not exist; choose one after adding it'):
        Config.load(path=path)


def test_a_token_is_kept_secret(tmp_path: Path) -> None:
    config = Config.load(path=written(tmp_path, user={"token": "s3cret"}))
    assert config.token == Secret("s3cret")
    assert "s3cret" not in repr(config)
    assert "s3cret" not in repr(kubeconfig.read([tmp_path / "config"]))
