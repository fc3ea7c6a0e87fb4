"""The admission configuration file: what it gives, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.server.admission import catalogue
from ostinato.server.admission.cluster.event_rate_limit import Limit
from ostinato.server.admission.configuration import ConfigurationError, read
from ostinato.server.admission.optional_plugins import PLUGINS

VERSION = "apiserver.config.k8s.io/v1"
RATE = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
SECURITY = {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}
TOLERATIONS = {"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
QUOTA = {"apiVersion": VERSION, "kind": "ResourceQuotaConfiguration"}
HOOKS = {"apiVersion": VERSION, "kind": "WebhookAdmissionConfiguration"}


def _rate(kind: str, qps: Any) -> Any:
    return {**RATE, "limits": [{"type": kind, "qps": qps, "burst": 1}]}


def _file(place: Path, *plugins: Any, **more: Any) -> Path:
    file = place / "admission.yaml"
    file.write_text(yaml.dump({"apiVersion": VERSION, "kind": "AdmissionConfiguration", "plugins": [*plugins], **more}))
    return file


def test_a_configuration_is_inline_or_in_a_file_beside(tmp_path: Path) -> None:
    limits = [{"type": "Server", "qps": 1, "burst": 2}]
    (tmp_path / "events.yaml").write_text(yaml.dump({**RATE, "limits": limits}))
    for plugin in ({"path": "events.yaml"}, {"configuration": {**RATE, "limits": limits}}):
        found = read(_file(tmp_path, {"name": "EventRateLimit", **plugin}), ["EventRateLimit"])
        assert found == {"EventRateLimit": [Limit(type="Server", qps=1, burst=2)]}


def test_a_disabled_plugin_is_not_used(tmp_path: Path) -> None:
    plugin = {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"a": "b=c"}}}
    assert read(_file(tmp_path, plugin), []) == {}
    assert read(_file(tmp_path, plugin), ["PodNodeSelector"]) == {"PodNodeSelector": {"a": "b=c"}}


def test_the_old_file_of_one_plugin_is_read(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}\n")
    assert read(file, ["PodNodeSelector"]) == {"PodNodeSelector": {"clusterDefaultNodeSelector": "a=b"}}


@pytest.mark.parametrize(
    ("name", "configuration", "problem"),
    [
        ("EventRateLimit", {**RATE, "limits": []}, r"limits: Invalid value: .*must not be empty"),
        (
            "EventRateLimit",
            _rate("Pod", 1),
            r"limits\[0\].type: Unsupported",
        ),
        (
            "EventRateLimit",
            _rate("User", 0),
            r"limits\[0\].qps: .*positive",
        ),
        (
            "EventRateLimit",
            _rate("User", "x"),
            r"limits\[0\].qps: Expected",
        ),
        ("EventRateLimit", {"limits": []}, "want kind Configuration of eventratelimit"),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": {"a": "b"}}, "podNodeSelectorPluginConfig.a: invalid"),
        ("PodSecurity", {**SECURITY, "defaults": {"enforce": "low"}}, "defaults.enforce: Invalid value"),
        ("PodSecurity", {**SECURITY, "defaults": {"enforce-version": "v2"}}, "defaults.enforce-version: Invalid value"),
        ("PodSecurity", {**SECURITY, "exemptions": {"namespaces": ["a", "a"]}}, r"namespaces\[1\]: Duplicate value"),
        ("PodSecurity", {**SECURITY, "exemptions": {"usernames": [""]}}, "username must not be empty"),
        ("PodSecurity", {**SECURITY, "default": {}}, "unknown field `default`"),
        ("PodTolerationRestriction", {**TOLERATIONS, "default": [{"key": "-"}]}, r"default\[0\].key: Invalid value"),
        ("ResourceQuota", {**QUOTA, "limitedResources": [{}]}, r"limitedResources\[0\].resource: Required value"),
        ("ValidatingAdmissionWebhook", {**HOOKS, "kubeConfigFile": "a"}, "must be an absolute file path"),
        ("ValidatingAdmissionWebhook", {**HOOKS, "kubeConfigFile": "/nowhere"}, "does not exist"),
        ("ImagePolicyWebhook", {"imagePolicy": {"kubeConfigFile": "/nowhere"}}, "imagePolicy.kubeConfigFile: /nowhere"),
        ("ImagePolicyWebhook", {"imagePolicy": {}}, "kubeConfigFile"),
        ("LimitRanger", {"a": 1}, "LimitRanger takes no configuration"),
        ("LimitRange", {}, '"LimitRange" is unknown'),
    ],
)
def test_a_fault_names_file_plugin_and_field(tmp_path: Path, name: str, configuration: Any, problem: str) -> None:
    file = _file(tmp_path, {"name": name, "configuration": configuration})
    with pytest.raises(ConfigurationError, match=problem) as refused:
        read(file, catalogue.NAMES)
    assert str(refused.value).startswith(str(file))


@pytest.mark.parametrize("name", ["EventRateLimit", "ImagePolicyWebhook"])
def test_a_plugin_that_needs_a_configuration_is_refused_without(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        read(None, [name])


def test_all_optional_plugins_are_off_by_default() -> None:
    assert set(PLUGINS) <= catalogue.OFF_BY_DEFAULT <= set(catalogue.NAMES)
    assert len(set(catalogue.NAMES)) == len(catalogue.NAMES) == 41


def test_the_order_is_kubernetes_own_whatever_the_options_say() -> None:
    names = catalogue.enabled(["AlwaysDeny", "AlwaysAdmit"], ["ResourceQuota"])
    assert (names[0], names[-1]) == ("AlwaysAdmit", "AlwaysDeny")
    assert "ResourceQuota" not in names
