"""Additions to a project: kinds, controllers, webhooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato.scaffold import (
    Change,
    Hooks,
    NewKind,
    Project,
    ScaffoldError,
    Subject,
    add_controller,
    add_kind,
    add_webhook,
    changes,
    extend,
    load_project,
)


def extended(project: Path, addition: Callable[[Project], Project], **options: bool) -> list[str]:
    return [f"{each.action} {each.path}" for each in extend(project, addition, **options)]


def kind(name: str, **answers: object) -> Callable[[Project], Project]:
    return lambda project: add_kind(project, NewKind(kind=name, **answers))  # type: ignore[arg-type]


def controller(name: str, module: str = "", **subject: str) -> Callable[[Project], Project]:
    return lambda project: add_controller(project, Subject(kind=name, **subject), module)


def webhook(name: str, *hooks: str, **subject: str) -> Callable[[Project], Project]:
    return lambda project: add_webhook(project, Subject(kind=name, **subject), Hooks(**dict.fromkeys(hooks, True)))


def test_a_kind_is_added_with_its_controller(project: Path) -> None:
    assert extended(project, kind("Cup")) == [
        "create samples/cup_v1.yaml",
        "create src/demo/cup_controller.py",
        "create src/demo/cup_v1.py",
        "create tests/test_cup_controller.py",
    ]
    assert [each.label for each in load_project(project).kinds] == [
        "Demo demo.example.dev/v1",
        "Cup demo.example.dev/v1",
    ]
    assert extended(project, kind("Saucer", controller=False)) == [
        "create samples/saucer_v1.yaml",
        "create src/demo/saucer_v1.py",
    ]


def test_a_second_version_leaves_one_stored(project: Path) -> None:
    assert extended(project, kind("Demo", version="v2")) == [
        "create samples/demo_v2.yaml",
        "update src/demo/demo_v1.py",
        "create src/demo/demo_v2.py",
    ]
    assert "@marked(Stored())\n@marked(Column(" in (project / "src/demo/demo_v1.py").read_text()
    text = (project / "src/demo/demo_v2.py").read_text()
    assert "Stored" not in text
    assert 'version="v2",\n    kind="Demo",' in text
    assert 'image: Annotated[str, Len(1, 255)] = "nginx"' in text


def test_one_kind_in_two_groups(project: Path) -> None:
    extended(project, kind("Cup"))
    assert "create src/demo/bar_cup_controller.py" in extended(project, kind("Cup", group="bar.example.org"))
    assert "async def bar_cups(cup: Cup" in (project / "src/demo/bar_cup_controller.py").read_text()
    with pytest.raises(
        ScaffoldError, match=r"Cup is in several groups; choose one with --group: bar.example.org, demo"
    ):
        extended(project, webhook("Cup", "validating"))
    assert "create src/demo/bar_cup_webhook.py" in extended(
        project, webhook("Cup", "validating", group="bar.example.org")
    )


def test_a_controller_of_a_built_in_kind(project: Path) -> None:
    assert extended(project, controller("Pod")) == [
        "create src/demo/pod_controller.py",
        "create tests/test_pod_controller.py",
    ]
    text = (project / "src/demo/pod_controller.py").read_text()
    assert "from ostinato.kinds.core_v1 import Pod\n" in text
    with pytest.raises(ScaffoldError, match="give the second controller a name with --name"):
        extended(project, controller("Pod"))
    assert "create src/demo/pod_backup_controller.py" in extended(project, controller("Pod", "pod-backup"))
    assert "create src/demo/kind_test_pods_controller.py" in extended(project, controller("Pod", "test-pods"))
    with pytest.raises(
        ScaffoldError, match=r"Event exists several times; choose one of: --group '' --version v1, --gr"
    ):
        extended(project, controller("Event"))
    extended(project, controller("Event", group="events.k8s.io"))


def test_a_kind_of_others_is_imported_from_its_module(project: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"kitchen.py: no such file; write it with ostinato types CRD.yaml -o "):
        extended(project, controller("Kettle", source="kitchen"))
    (project / "src/demo/kitchen.py").write_text("class Kettle: ...\n")
    assert extended(project, controller("Kettle", source="kitchen")) == [
        "create src/demo/kettle_controller.py",
        "create tests/test_kettle_controller.py",
    ]
    assert "\nfrom demo.kitchen import Kettle\n" in (project / "src/demo/kettle_controller.py").read_text()
    assert "create src/demo/kettle_webhook.py" in extended(project, webhook("Kettle", "mutating", source="kitchen"))
    extended(project, kind("Plate"))
    extended(project, webhook("Plate", "mutating"))
    with pytest.raises(ScaffoldError, match=r"plate_webhook.py exists, for another kind of this name"):
        extended(project, webhook("Plate", "validating", source="kitchen"))
    with pytest.raises(ScaffoldError, match="Kettle is not a kind of this project"):
        extended(project, webhook("Kettle", "conversion", source="kitchen"))
    with pytest.raises(ScaffoldError, match=r"module '\.\./kitchen': want lower-case letters"):
        extended(project, controller("Kettle", source="../kitchen"))
    with pytest.raises(ScaffoldError, match="kind 'Path': generated modules import another class of this name"):
        extended(project, webhook("Path", "mutating", source="kitchen"))


def test_webhooks_share_one_server(project: Path) -> None:
    assert extended(project, webhook("Demo", "validating")) == [
        "update pyproject.toml",
        "create src/demo/demo_webhook.py",
        "create src/demo/webhooks.py",
        "create tests/test_demo_webhook.py",
    ]
    assert '"ostinato[webhook]>=0.1"' in (project / "pyproject.toml").read_text()
    assert "default_demo" not in (project / "src/demo/webhooks.py").read_text()
    assert extended(project, webhook("Demo", "mutating")) == [
        "update src/demo/demo_webhook.py",
        "update src/demo/webhooks.py",
        "update tests/test_demo_webhook.py",
    ]
    extended(project, webhook("Pod", "validating"))
    server = (project / "src/demo/webhooks.py").read_text()
    assert "    default_demo,\n    validate_demo,\n    validate_pod,\n" in server
    with pytest.raises(ScaffoldError, match="Demo has these webhooks already"):
        extended(project, webhook("Demo", "validating"))


def test_conversion_needs_two_versions(project: Path) -> None:
    with pytest.raises(
        ScaffoldError, match=r"Demo has one version; add another with ostinato add kind Demo --version v2"
    ):
        extended(project, webhook("Demo", "conversion"))
    extended(project, kind("Demo", version="v2"))
    assert "create src/demo/demo_conversion.py" in extended(project, webhook("Demo", "conversion"))
    assert extended(project, kind("Demo", version="v3")) == [
        "create samples/demo_v3.yaml",
        "update src/demo/demo_conversion.py",
        "create src/demo/demo_v3.py",
        "update src/demo/webhooks.py",
        "update tests/test_demo_conversion.py",
    ]
    with pytest.raises(ScaffoldError, match="Pod is not a kind of this project"):
        extended(project, webhook("Pod", "conversion"))
    with pytest.raises(ScaffoldError, match="choose the webhooks: --validating, --mutating, --conversion"):
        extended(project, webhook("Demo"))


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        (kind("Demo"), "Demo demo.example.dev/v1 exists; choose another kind, or another --version"),
        (kind("Demo", version="v2", cluster_scoped=True), "all versions of a kind have the same plural and scope"),
        (kind("DEMO"), "kind 'DEMO': Demo has the same names in the API"),
        (kind("DemoList"), "kind 'DemoList': Demo has the same names in the API"),
        (kind("Cup", plural="demos"), "kind 'Cup': Demo has the same names in the API"),
        (kind("Cup", cluster_scoped=True, image="nginx"), "--image needs a namespaced kind"),
        (kind("Cup", image="a b"), "image 'a b': want a container image"),
        (kind("Cup", plural="Cups"), "plural 'Cups': want lower-case letters"),
        (kind("../cup"), "kind '../cup': want at most 50 letters"),
        (
            controller("Cup"),
            r"neither a kind of this project \(Demo demo.example.dev/v1\) nor of Kubernetes; add it with",
        ),
        (controller("Pod", "../x"), "module '../x': want lower-case letters"),
        (controller("Pod", version="v9"), "Pod v9 is neither"),
        (controller("$(id)"), r"kind '\$\(id\)': want letters and digits"),
    ],
)
def test_refused_additions_write_nothing(project: Path, addition: Callable[[Project], Project], message: str) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    with pytest.raises(ScaffoldError, match=message):
        extend(project, addition)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_a_file_of_the_user_is_replaced_only_by_force(project: Path) -> None:
    mine = project / "src/demo/cup_v1.py"
    mine.write_text("mine = 1\n")
    with pytest.raises(
        ScaffoldError, match=r"would replace src/demo/cup_v1.py; move it away, or replace it with --for"
    ):
        extended(project, kind("Cup"))
    assert mine.read_text() == "mine = 1\n"
    assert "update src/demo/cup_v1.py" in extended(project, kind("Cup"), dry_run=True, force=True)
    assert mine.read_text() == "mine = 1\n"
    extended(project, kind("Cup"), force=True)
    assert "class Cup(" in mine.read_text()


def test_edits_are_merged_or_kept_between_markers(project: Path) -> None:
    extended(project, webhook("Demo", "validating"))
    server = project / "src/demo/webhooks.py"
    server.write_text(server.read_text().replace('name="demo",\n', 'name="demo",\n    port=9444,\n'))
    assert "update src/demo/webhooks.py" in extended(project, webhook("Pod", "validating"))
    assert 'name="demo",\n    port=9444,\n' in server.read_text()
    server.write_text(server.read_text().replace("    validate_pod,\n", "    validate_pod,  # mine\n"))
    assert "conflict src/demo/webhooks.py" in extended(project, webhook("Pod", "mutating"))
    text = server.read_text()
    assert "<<<<<<< yours\n    validate_pod,  # mine\n" in text
    assert "=======\n    default_pod,\n    validate_pod,\n>>>>>>> ostinato add\n" in text
    with pytest.raises(ScaffoldError, match=r"src/demo/webhooks.py has conflict markers; resolve them first"):
        extended(project, webhook("Secret", "mutating"))


def test_a_deleted_file_stays_deleted(project: Path) -> None:
    extended(project, webhook("Demo", "validating"))
    (project / "tests/test_demo_webhook.py").unlink()
    done = extend(project, webhook("Demo", "mutating"))
    assert Change("keep", "tests/test_demo_webhook.py", None, "deleted in the project") in done
    assert not (project / "tests/test_demo_webhook.py").exists()


def test_line_ends_and_modes_are_kept(project: Path) -> None:
    file = project / "pyproject.toml"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    file.chmod(0o640)
    extended(project, webhook("Demo", "validating"))
    text = file.read_bytes()
    assert b'"ostinato[webhook]>=0.1",\r\n' in text
    assert text.count(b"\n") == text.count(b"\r\n")
    assert file.stat().st_mode & 0o777 == 0o640


def test_two_commands_at_once_are_refused(project: Path) -> None:
    with changes.locked(project), pytest.raises(ScaffoldError, match="another ostinato command is changing"):
        extend(project, kind("Cup"))


RECORD = "template: 1\nname: demo\npackage: demo\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("template: 1\nname: demo\npackage: ../../etc\n", "package '../../etc'"),
        (RECORD + "size: 1\n", "unknown field `size`"),
        ("template: 1\nname: demo\n", "missing required field `package`"),
        ("template: [\n", "restore it from version control"),
        (
            RECORD + "controllers: [{group: '', version: v1, kind: Pod, module: ../../x}]\n",
            "module '../../x'",
        ),
        (
            RECORD + "controllers: [{group: '', version: v1, kind: Nothing, module: nothing}]\n",
            "Nothing v1 is neither a kind of this project nor of Kubernetes",
        ),
    ],
)
def test_a_damaged_record_is_reported(project: Path, text: str, message: str) -> None:
    (project / ".ostinato.yaml").write_text(text)
    with pytest.raises(ScaffoldError, match=r"\.ostinato\.yaml: ") as refused:
        extend(project, kind("Cup"))
    assert message in str(refused.value)


def test_a_directory_without_a_record_is_not_a_project(tmp_path: Path) -> None:
    with pytest.raises(
        ScaffoldError, match=r"is not a project: it has no .ostinato.yaml; run the command in a directory"
    ):
        extend(tmp_path, kind("Cup"))


def test_a_record_of_a_later_release_is_refused(project: Path) -> None:
    record = project / ".ostinato.yaml"
    record.write_text(record.read_text().replace("template: 1", "template: 99"))
    with pytest.raises(ScaffoldError, match="the project has template 99, and this release has 1; upgrade ostinato"):
        extend(project, kind("Cup"))
