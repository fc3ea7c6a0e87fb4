"""`deploy/overrides.yaml`: defaults, and errors that name the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato.packaging import Overrides, PackageError, parse_overrides, read_overrides


def test_an_empty_file_has_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text("# nothing yet\n")
    assert read_overrides(file) == Overrides()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"replica": 2}, "replica: unknown field; did you mean replicas?"),
        ({"features": {"metric": True}}, "features.metric: unknown field; did you mean metrics?"),
        ({"olm": {"links": [{"name": "a", "uri": "b"}]}}, "olm.links[0].uri: unknown field; did you mean url?"),
        (
            {"certificates": {"zzz": 1}},
            "certificates.zzz: unknown field; known fields: certManager, secret, issuer, issuerKind",
        ),
        ({"replicas": "two"}, "replicas: Expected `int`, got `str`"),
        ({"env": {"PORT": 8080}}, "env[...]: Expected `str | object`, got `int`; put the value in quotes"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_a_mistake_is_named_with_its_field(content: Any, message: str) -> None:
    with pytest.raises(PackageError) as error:
        parse_overrides(content, "deploy/overrides.yaml")
    assert str(error.value) == f"deploy/overrides.yaml: {message}"


def test_yaml_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "overrides.yaml"
    for text in ("replicas: [", "a: 1\na: 2"):
        file.write_text(text)
        with pytest.raises(PackageError, match=r"overrides\.yaml: not YAML"):
            read_overrides(file)
    with pytest.raises(PackageError, match="cannot be read: No such file"):
        read_overrides(tmp_path / "absent.yaml")
