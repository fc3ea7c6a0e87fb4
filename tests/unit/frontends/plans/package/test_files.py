"""Packages from directories and archives, and what is wrong with bad ones."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from ostinato.frontends.plans.package.files import PackageError, parse_files, read_archive, read_package
from ostinato.frontends.plans.package.resources import package_of

OPERATOR = b"""
name: web
operatorVersion: "1.0"
kubernetesVersion: 1.13
tasks:
- {name: apply, kind: Apply, spec: {resources: [sub/a.yaml]}}
plans:
  deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: one, tasks: [apply]}]}]}
"""
PARAMS = b"""
parameters:
- {name: COUNT, type: integer, default: 3}
- {name: LIST, type: array, default: [a, b]}
- {name: FLAG, type: boolean, default: true, required: false, immutable: true}
- {name: KIND, enum: [x, 1]}
"""
FILES = {"operator.yaml": OPERATOR, "params.yaml": PARAMS, "templates/sub/a.yaml": b"a: 1", "docs/x.md": b"x"}


def test_a_directory_becomes_an_operator_and_a_version(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = package_of(read_package(tmp_path))
    assert (found.operator.metadata.name, found.version.metadata.name) == ("web", "web-1.0")
    assert found.version.spec.templates == {"sub/a.yaml": "a: 1"}
    assert found.operator.spec.kubernetes_version == "1.13"
    parameters = {each.name: each for each in found.version.spec.parameters}
    assert (parameters["COUNT"].default, parameters["LIST"].default) == ("3", "- a\n- b\n")
    assert (parameters["FLAG"].default, parameters["FLAG"].required, parameters["FLAG"].immutable) == (
        "true",
        False,
        True,
    )
    assert (parameters["KIND"].required, parameters["KIND"].default, parameters["KIND"].enum) == (
        True,
        None,
        ["x", "1"],
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operator.yaml": None}, "web: operator package missing operator.yaml"),
        ({"params.yaml": None}, "web: operator package missing params.yaml"),
        ({"operator.yaml": b"name: a\nplans: {]"}, "web/operator.yaml:2: not YAML"),
        ({"operator.yaml": b"- a"}, "web/operator.yaml: expected a map, found list"),
        ({"operator.yaml": b"apiVersion: kudo.dev/v1\nname: a"}, "expecting kudo.dev/v1beta1, found kudo.dev/v1"),
        ({"operator.yaml": b"plans: {}"}, "name: an operator needs a name"),
        (
            {"operator.yaml": b"name: a\nplans: []"},
            "web/operator.yaml: Expected `object | null`, got `array` - at `$.plans`",
        ),
        ({"templates/sub/a.yaml": None}, "web/operator.yaml: task apply: missing template: sub/a.yaml"),
        ({"operator.yaml": b"name: a\ntasks: [{name: t, kind: Aply}]"}, "task t: unknown task kind Aply"),
        ({"templates/b.yaml": b"\xff"}, "web/templates/b.yaml: not UTF-8"),
    ],
)
def test_a_bad_package_is_named_with_its_file(changes: dict[str, bytes | None], message: str) -> None:
    files = {name: content for name, content in (FILES | changes).items() if content is not None}
    with pytest.raises(PackageError) as error:
        package_of(parse_files(files, "web"))
    assert message in str(error.value)


def archive(*members: tuple[str, bytes | str]) -> bytes:
    """Return a .tgz with files, and links where the content is a string."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_an_archive_is_read_without_unpacking_it() -> None:
    assert package_of(read_archive(archive(*FILES.items()), "web.tgz")).name == "web"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not an archive", "not a .tgz archive"),
        (archive(("../../etc/passwd", b"x")), "leaves the archive"),
        (archive(("templates/a.yaml", "/etc/passwd")), "links in archives"),
        (archive(("operator.yaml", b"x" * (5 << 20))), "at most"),
    ],
)
def test_a_hostile_archive_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(PackageError, match=message):
        read_archive(data, "bad.tgz")


def test_a_link_out_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    root = tmp_path / "package"
    root.mkdir()
    (root / "operator.yaml").symlink_to(tmp_path / "secret")
    with pytest.raises(PackageError, match="leaves the package"):
        read_package(root)
