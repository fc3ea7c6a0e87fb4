"""Images from Dockerfiles: files and settings, nothing is executed."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from ostinato.plane.node.images.build import Layer
from ostinato.plane.node.images.dockerfile import Built, build
from ostinato.plane.node.images.image import ImageConfig, ImageError


@pytest.fixture
def context(tmp_path: Path) -> Path:
    place = tmp_path / "context"
    for name in ("app/main.py", "app/sub/util.py", "app/__pycache__/x.pyc", "one.txt", "two.txt", ".git/config"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (place / ".dockerignore").write_text("# comment\n.git\n**/__pycache__\n*.txt\n!two.txt\n")
    return place


def no_base(name: str, _: Path) -> tuple[ImageConfig, list[Layer]]:
    raise ImageError(f"the image {name} is not on this machine")


def built(context: Path, text: str, **arguments: str) -> Built:
    (context.parent / "Dockerfile").write_text(text)
    work = context.parent / "work"
    work.mkdir()
    return build(context.parent / "Dockerfile", context, work, no_base, arguments)


def entries(layer: Layer) -> dict[str, tuple[int, int]]:
    with tarfile.open(layer.path) as archive:
        return {each.name: (each.uid, each.gid) for each in archive}


def test_settings_are_those_of_the_instructions(context: Path) -> None:
    made = built(
        context,
        """
        # a comment
        ARG VERSION=1
        FROM scratch
        ARG VERSION
        ENV A=one B="two words" \\
            VERSION=${VERSION}
        ENV PATH=/opt/bin:$A
        WORKDIR /srv
        WORKDIR app
        USER 1000:1000
        EXPOSE 80 53/udp
        LABEL maintainer="me"
        STOPSIGNAL SIGINT
        CMD echo $A
        ENTRYPOINT ["/run", "-x"]
        """,
        VERSION="9",
    )
    assert made.config == ImageConfig(
        entrypoint=["/run", "-x"],
        cmd=None,
        env=["A=one", "B=two words", "VERSION=9", "PATH=/opt/bin:one"],
        user="1000:1000",
        working_dir="/srv/app",
        stop_signal="SIGINT",
        labels={"maintainer": "me"},
        exposed_ports={"80/tcp": {}, "53/udp": {}},
    )


def test_files_are_copied_where_docker_copies_them(context: Path) -> None:
    copies = "COPY app ./code\nCOPY --chown=7:8 two.txt /etc/\nCOPY two.txt renamed\nCOPY . /all/"
    text = f"FROM scratch\nWORKDIR /srv\n{copies}"
    code, etc, renamed, everything = map(entries, built(context, text).layers)
    assert set(code) == {"srv/code", "srv/code/main.py", "srv/code/sub", "srv/code/sub/util.py"}
    assert etc == {"etc/two.txt": (7, 8)}
    assert renamed == {"srv/renamed": (0, 0)}
    assert {"all/app/main.py", "all/two.txt"} <= set(everything)
    assert not {"all/one.txt", "all/.git", "all/.git/config"} & set(everything)


def test_the_same_files_give_the_same_layer(context: Path) -> None:
    text = "FROM scratch\nCOPY app /a\nCOPY app /a"
    first, second = built(context, text).layers
    assert first.digest == second.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no FROM"),
        ("COPY a b", ":1: COPY: comes before FROM"),
        ("FROM scratch\n\nRUN make", ":3: RUN: commands are not run while building"),
        ("FROM scratch\nFROM scratch", ":2: FROM: only one stage"),
        ("FROM base:1", ":1: FROM: the image base:1 is not on this machine"),
        ("FROM scratch\nHEALTHCHECK x", ":2: HEALTHCHECK: unknown or unsupported"),
        ("FROM scratch\nCOPY ../secret /", ":2: COPY: ../secret: is outside of the context"),
        ("FROM scratch\nCOPY one.txt /", ":2: COPY: one.txt: not found in the context"),
        ("FROM scratch\nADD https://example.org/x /", ":2: ADD: .*only files of the context"),
        ("FROM scratch\nCOPY --from=x a b", ":2: COPY: --from is not supported"),
        ("FROM scratch\nCOPY --chown=me app /", "--chown=me: want numbers"),
        ("FROM scratch\nCMD [not json", ":2: CMD: "),
    ],
)
def test_errors_name_the_line_and_the_reason(context: Path, text: str, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        built(context, text)


def test_a_directory_that_links_out_of_the_context_is_not_followed(context: Path) -> None:
    (context / "door").symlink_to("/etc")
    with pytest.raises(ImageError, match="outside of the context"):
        built(context, "FROM scratch\nCOPY door/passwd /")
