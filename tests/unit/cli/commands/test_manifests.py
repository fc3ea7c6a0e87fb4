"""`ostinato manifests`: CRDs, roles and webhook configurations of a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ostinato.cli.app import run

PROGRAM = """
from ostinato import CustomResource, Manager, Struct, controller
from ostinato.crd import Access
from ostinato.kinds.apps_v1 import Deployment
from ostinato.webhook import ServiceEndpoint, Webhooks, validator

class Widget(CustomResource, group="example.dev", version="v1"):
    spec: dict[str, str] = {}

@controller(Widget, owns=[Deployment], access=[Access(groups=("",), resources=("pods/exec",), verbs=("create",))])
async def widgets(widget: Widget, ctx) -> None: ...

@validator(Widget)
def check(widget): ...

Manager(leader_election="widgets").add(
    widgets, Webhooks(check, endpoint=ServiceEndpoint("shop", "widgets-webhooks"))
).run()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "widget_shop.py").write_text(PROGRAM)
    yield tmp_path
    for name in set(sys.modules) - before:
        if not name.startswith("ostinato"):
            del sys.modules[name]


def objects(text: str) -> dict[str, Any]:
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in yaml.safe_load_all(text)}


def rules(role: dict[str, Any]) -> dict[str, list[str]]:
    """Verbs by resource; behind a colon, of the only object that they are for."""
    return {
        ":".join([resource, *rule.get("resourceNames", ())]): rule["verbs"]
        for rule in role["rules"]
        for resource in rule["resources"]
    }


def test_all_manifests_are_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["manifests", "widget_shop.py"]) == 0
    found = objects(capsys.readouterr().out)
    assert list(found) == [
        "CustomResourceDefinition/widgets.example.dev",
        "ServiceAccount/widget-shop",
        "ClusterRole/widget-shop",
        "ClusterRoleBinding/widget-shop",
        "Role/widget-shop",
        "RoleBinding/widget-shop",
        "ValidatingWebhookConfiguration/webhooks",
    ]


REFUSED = """
from typing import Annotated
from ostinato import CustomResource, Struct
from ostinato.api.markers import ExactlyOneOf, Immutable, Len, Rule, marked

@marked(ExactlyOneOf("a", "b", "c", "d", "e"))
class Source(Struct):
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    e: str | None = None

class Spec(Struct):
    sources: dict[str, list[Source]] = {}
    enough: Annotated[list[Source], Len(at_most=100)] = []
    size: Annotated[int, Rule("self +")]

class Widget(CustomResource, group="example.dev", version="v1"):
    spec: Spec
"""


def test_a_definition_that_a_server_would_reject_is_not_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "refused.py").write_text(REFUSED)
    assert run(["manifests", "refused.py", "--output", "config"]) == 1
    message = capsys.readouterr().err
    assert "CustomResourceDefinition of Widget: an API server would reject it:\n" in message
    assert "v1: spec.sources{}[].x-kubernetes-validations[0].rule: estimated rule cost exceeds budget" in message
    assert "and those around it, with Len(at_most=...)" in message
    assert "v1: spec.size.x-kubernetes-validations[0].rule: compilation failed" in message
    assert "spec.enough" not in message
    assert not (place / "config").exists()


def test_without_the_server_package_definitions_are_not_validated(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "refused.py").write_text(REFUSED)
    monkeypatch.setitem(sys.modules, "ostinato.server.resources.apiextensions.strategy", None)
    assert run(["manifests", "refused.py"]) == 0
    assert "CustomResourceDefinition/widgets.example.dev" in objects(capsys.readouterr().out)


def test_the_roles_grant_what_the_program_does(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["manifests", "widget_shop.py", "--account", "shop/seller", "--name", "shop"]) == 0
    found = objects(capsys.readouterr().out)
    assert rules(found["ClusterRole/shop"]) == {
        "pods/exec": ["create"],
        "validatingwebhookconfigurations:webhooks": ["get", "patch"],
        "deployments": ["create", "delete", "get", "list", "patch", "watch"],
        "events": ["create", "patch"],
        "widgets": ["get", "list", "patch", "watch"],
        "widgets/finalizers": ["update"],
        "widgets/status": ["patch", "update"],
    }
    assert rules(found["Role/shop"]) == {
        "leases": ["create"],
        "leases:widgets": ["get", "update"],
        "secrets": ["create"],
        "secrets:webhooks-certificates": ["get", "update"],
    }
    assert found["Role/shop"]["metadata"]["namespace"] == "shop"
    assert found["ServiceAccount/seller"]["metadata"]["namespace"] == "shop"
    subjects = [{"kind": "ServiceAccount", "name": "seller", "namespace": "shop"}]
    assert found["ClusterRoleBinding/shop"]["subjects"] == found["RoleBinding/shop"]["subjects"] == subjects


def test_a_program_that_writes_core_events_may_create_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for core in ("True", "False"):
        program = PROGRAM.replace("Manager(", f"Manager(reporting=ReportingOptions(core_events={core}), ")
        (place / "core_one.py").write_text(f"from ostinato.manager import ReportingOptions\n{program}")
        assert run(["manifests", "core_one.py"]) == 0
        role = objects(capsys.readouterr().out)["ClusterRole/core-one"]
        groups = {group for rule in role["rules"] if "events" in rule["resources"] for group in rule["apiGroups"]}
        assert groups == ({"", "events.k8s.io"} if core == "True" else {"events.k8s.io"})
        sys.modules.pop("core_one", None)


def test_one_namespace_needs_roles_in_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "simple_one.py").write_text(PROGRAM.split("@validator")[0])
    assert run(["manifests", "simple_one.py", "-n", "team", "--account", "team/simple"]) == 0
    found = objects(capsys.readouterr().out)
    assert "deployments" in rules(found["Role/simple-one"])
    assert "ClusterRole/simple-one" in found  # for what it declares itself, without a namespace
    assert rules(found["ClusterRole/simple-one"]) == {"pods/exec": ["create"]}
    assert run(["manifests", "simple_one.py", "-n", "team-*"]) != 0
    assert "--namespace team-*: a Role cannot have a pattern; leave" in capsys.readouterr().err
    assert run(["manifests", "simple_one.py", "--leader-election", "lease"]) == 0
    assert "leases" in rules(objects(capsys.readouterr().out)["Role/simple-one"])


SCOPED = """
from ostinato import CustomResource, Manager, controller
from ostinato.cache import InformerSettings
from ostinato.controllers import WatchKind
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager import CacheOptions

class Widget(CustomResource, group="example.dev", version="v1"):
    spec: dict[str, str] = {}

@controller(Widget, owns=[ConfigMap], watches=[WatchKind(Secret, map_to=lambda secret: [])])
async def widgets(widget: Widget, ctx) -> None: ...

Manager(
    caches=CacheOptions(
        settings={Secret: InformerSettings(namespaces=("shared",))},
        defaults=InformerSettings(namespaces=("red", "blue")),
    )
).add(widgets).run()
"""


@pytest.mark.parametrize(
    ("arguments", "homes"), [((), {"red", "blue"}), (("-n", "team"), {"team"})], ids=["as in the file", "narrowed"]
)
def test_roles_are_for_the_namespaces_of_the_caches(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], homes: set[str]
) -> None:
    (place / "scoped.py").write_text(SCOPED)
    assert run(["manifests", "scoped.py", *arguments]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    roles = {each["metadata"]["namespace"]: rules(each) for each in found if each["kind"] == "Role"}
    assert not [each for each in found if each["kind"] == "ClusterRole"]
    assert roles.keys() == homes | {"shared"}
    assert roles["shared"] == {"secrets": ["get", "list", "watch"], "events": ["create", "patch"]}
    for home in homes:
        assert roles[home].keys() == {"configmaps", "events", "widgets", "widgets/finalizers", "widgets/status"}


def test_roles_are_for_the_namespaces_of_a_controllers_own_settings(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = 'map_to=lambda secret: [], options={"settings": InformerSettings(namespaces=("vault",))}'
    (place / "asking.py").write_text(SCOPED.replace("map_to=lambda secret: []", own))
    assert run(["manifests", "asking.py"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    roles = {each["metadata"]["namespace"]: rules(each) for each in found if each["kind"] == "Role"}
    assert roles.keys() == {"red", "blue", "vault"}
    assert roles["vault"] == {"secrets": ["get", "list", "watch"], "events": ["create", "patch"]}


def test_lease_and_events_are_allowed_in_the_namespaces_that_use_them(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def roles(file: str, *arguments: str) -> dict[str, set[str]]:
        assert run(["manifests", file, "-n", "team", "--account", "ops/simple", *arguments]) == 0
        found = [each for each in yaml.safe_load_all(capsys.readouterr().out) if each["kind"] == "Role"]
        return {role["metadata"]["namespace"]: rules(role).keys() & {"leases", "events"} for role in found}

    (place / "in_team.py").write_text(PROGRAM.split("@validator")[0])
    assert roles("in_team.py", "--leader-election", "lease") == {"team": {"leases", "events"}}, "as run -n has it"
    (place / "elsewhere.py").write_text(
        PROGRAM.split("@validator")[0]
        + "from ostinato.manager import LeaderElection\n"
        + "Manager(leader_election=LeaderElection(name='a', namespace='leases')).add(widgets).run()\n"
    )
    assert roles("elsewhere.py") == {"leases": {"leases", "events"}, "team": {"events"}}
    (place / "everywhere.py").write_text(
        PROGRAM.split("@validator")[0].replace('version="v1"', 'version="v1", namespaced=False')
    )
    assert roles("everywhere.py") == {"team": {"events"}, "default": {"events"}}, "there are those of what is nowhere"


def test_files_are_written_once_and_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["manifests", "widget_shop.py", "--output", "config"]
    assert run([*arguments, "--check"]) == 1
    assert "rbac.yaml: missing" in capsys.readouterr().out
    assert run(arguments) == 0
    written = capsys.readouterr().out.split()
    assert written == ["config/crds/widgets.example.dev.yaml", "config/rbac.yaml", "config/webhooks.yaml"]
    first = {name: Path(name).read_bytes() for name in written}
    assert run(arguments) == 0
    assert capsys.readouterr().out == ""
    assert run([*arguments, "--check"]) == 0
    assert {name: Path(name).read_bytes() for name in written} == first
    (place / "widget_shop.py").write_text(PROGRAM.replace("pods/exec", "pods/log"))
    assert run([*arguments, "--check"]) == 1
    output = capsys.readouterr()
    assert "-  - pods/exec\n" in output.out
    assert "+  - pods/log\n" in output.out
    assert output.err == "ostinato manifests: config is out of date; run the command without --check\n"
    assert {name: Path(name).read_bytes() for name in written} == first


def test_a_file_of_kinds_yields_only_definitions(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "only_kinds.py").write_text(PROGRAM.split("@controller")[0])
    assert run(["manifests", "only_kinds.py"]) == 0
    assert list(objects(capsys.readouterr().out)) == ["CustomResourceDefinition/widgets.example.dev"]


def test_several_files_are_one_program(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "one_kind.py").write_text(PROGRAM.split("@controller")[0])
    (place / "controllers_of_it.py").write_text(
        "from ostinato import controller\nfrom one_kind import Widget\n"
        "@controller(Widget)\nasync def widgets(widget, ctx): ..."
    )
    assert run(["manifests", "one_kind.py", "controllers_of_it.py"]) == 0
    assert list(objects(capsys.readouterr().out))[:3] == [
        "CustomResourceDefinition/widgets.example.dev",
        "ServiceAccount/one-kind",
        "ClusterRole/one-kind",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check"], "--check needs --output DIR, the directory to compare with"),
        (["--account", "x"], "--account x: want NAMESPACE/NAME"),
        (["--output", "widget_shop.py"], "cannot write"),
    ],
)
def test_invalid_arguments_are_rejected(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["manifests", "widget_shop.py", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_file_without_kinds_and_controllers_is_an_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty_one.py").write_text("")
    assert run(["manifests", "empty_one.py"]) == 1
    assert capsys.readouterr().err == (
        "ostinato manifests: empty_one.py: nothing to write; found no kind, controller or webhook\n"
    )
