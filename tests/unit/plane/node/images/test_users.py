"""Users of containers by the files of their image."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.plane.node.images.users import ImageUser, UnknownUser, user_in

PASSWD = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:1000:1001::/www:/bin/sh\nodd:x:a:b::/:/\nhome:x:7:7:::\n"
GROUP = "root:x:0:\nweb:x:1001:\nextra:x:50:other,web\nmore:x:60:web\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text(PASSWD)
    (tmp_path / "etc" / "group").write_text(GROUP)
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "user"),
    [
        ("", ImageUser(0, 0, [], "/root")),
        ("web", ImageUser(1000, 1001, [50, 60], "/www")),
        ("1000", ImageUser(1000, 1001, [50, 60], "/www")),
        ("web:extra", ImageUser(1000, 50, [], "/www")),
        ("web:77", ImageUser(1000, 77, [], "/www")),
        ("4242", ImageUser(4242, 0, [], "/")),
        ("4242:60", ImageUser(4242, 60, [], "/")),
        ("home", ImageUser(7, 7, [], "/")),
    ],
)
def test_users_are_looked_up_by_name_and_number(root: Path, wanted: str, user: ImageUser) -> None:
    assert user_in(root, wanted) == user


@pytest.mark.parametrize(("wanted", "message"), [("nobody", "user nobody"), ("web:none", "group none"), ("odd", "odd")])
def test_unknown_names_are_an_error(root: Path, wanted: str, message: str) -> None:
    with pytest.raises(UnknownUser, match=message):
        user_in(root, wanted)


def test_an_image_without_files_has_numbers_only(tmp_path: Path) -> None:
    assert user_in(tmp_path, "5:6") == ImageUser(5, 6, [], "/")


def test_the_files_of_the_machine_are_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    assert user_in(tmp_path, "0") == ImageUser(0, 0, [], "/")
