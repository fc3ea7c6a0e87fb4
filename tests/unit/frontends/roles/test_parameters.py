"""Extra variables of runs."""

from __future__ import annotations

import pytest

from ostinato.frontends.roles.parameters import parameters_of, to_snake


@pytest.mark.parametrize(
    ("name", "snake"),  # recorded from ansible-operator
    [
        ("size", "size"),
        ("poolSize", "pool_size"),
        ("PoolSize", "_pool_size"),
        ("JSONData", "_json_data"),
        ("egressIP", "egress_ip"),
        ("egressIPs", "egress_ips"),
        ("IPAddress", "ip_address"),
        ("HTTPServer", "http_server"),
        ("myURLPath", "my_url_path"),
        ("already_snake", "already_snake"),
        ("with-dash", "with_dash"),
        ("k8sVersion", "k8s_version"),
        ("x1b2", "x_1_b2"),
        ("aBC", "abc"),
    ],
)
def test_names_are_converted_as_by_ansible_operator(name: str, snake: str) -> None:
    assert to_snake(name) == snake


OBJECT = {
    "apiVersion": "cert-manager.example.com/v1",
    "kind": "Issuer",
    "metadata": {"name": "a", "namespace": "n"},
    "spec": {"poolSize": 1, "nested": [{"innerName": "x {{ y }}"}], "color": "red"},
}


def test_the_object_its_spec_and_given_variables_are_passed() -> None:
    found = parameters_of(OBJECT, {"color": "blue"}, {"state": "absent"})
    assert found == {
        "pool_size": 1,
        "nested": [{"inner_name": "x {{ y }}"}],
        "color": "blue",
        "state": "absent",
        "ansible_operator_meta": {"namespace": "n", "name": "a"},
        "_cert_manager_example_com_issuer": OBJECT,
        "_cert_manager_example_com_issuer_spec": OBJECT["spec"],
    }
    assert parameters_of(OBJECT, snake_case=False)["poolSize"] == 1


def test_strings_of_the_object_are_marked_and_given_variables_are_not() -> None:
    found = parameters_of(OBJECT, {"greeting": "{{ motto }}"}, mark_unsafe=True)
    assert found["nested"] == [{"inner_name": {"__ansible_unsafe": "x {{ y }}"}}]
    assert found["_cert_manager_example_com_issuer"]["metadata"]["name"] == {"__ansible_unsafe": "a"}
    assert found["greeting"] == "{{ motto }}"
    assert found["pool_size"] == 1
