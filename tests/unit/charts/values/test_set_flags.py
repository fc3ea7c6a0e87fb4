"""`--set` and its relatives. What Helm makes of them is also in the recorded charts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato.charts import ChartError, ValueOptions
from ostinato.gotemplate import Int64


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": Int64(1)}),
        ("a=0,b=007,c=-5,d=1.5", {"a": Int64(0), "b": "007", "c": Int64(-5), "d": "1.5"}),
        ("a=true,b=FALSE,c=null,d=True x", {"a": True, "b": False, "c": None, "d": "True x"}),
        ("a.b.c=x", {"a": {"b": {"c": "x"}}}),
        (r"a\.b=x\,y", {"a.b": "x,y"}),
        ("a={x,1,true}", {"a": ["x", Int64(1), True]}),
        ("a={}", {"a": [""]}),
        ("a[1]=x", {"a": [None, "x"]}),
        ("a[0].b=1,a[0].c=2,a[1].b=3", {"a": [{"b": Int64(1), "c": Int64(2)}, {"b": Int64(3)}]}),
        ("a[0][1]=x", {"a": [[None, "x"]]}),
        ("a=", {"a": ""}),
        ("a=,b=1", {"a": "", "b": Int64(1)}),
        ("a=1,", {"a": Int64(1)}),
        ("", {}),
        ("a=b=c", {"a": "b=c"}),
        ("a=9223372036854775808", {"a": "9223372036854775808"}),
    ],
)
def test_set_options_become_values(text: str, values: dict[str, Any]) -> None:
    found = ValueOptions(set=[text]).values()
    assert found == values
    assert repr(found) == repr(values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", 'key "a" has no value'),
        ("a,b=1", 'key "a" has no value \\(cannot end with ,\\)'),
        ("a.=1", "has no value|no value"),
        ("a[x]=1", "error parsing index"),
        ("a[-1]=1", "negative -1 index not allowed"),
        ("a[70000]=1", "greater than maximum supported index"),
        ("a[0]x=1", "unexpected data at end of array index"),
        ("a={x", "list must terminate with '}'"),
        (".".join("a" * 40) + "=1", "greater than maximum supported nested level of 30"),
        ("a=1,a.b=2", "not a map already"),
        ("a=1,a[0]=2", "not a list already"),
    ],
)
def test_malformed_options_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ChartError, match=f"failed parsing --set data: .*({problem})"):
        ValueOptions(set=[text]).values()


def test_the_other_options_and_their_precedence(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("a: {x: 1, w: 2}\nlist: [1, 2]\n")
    (tmp_path / "two.yaml").write_text("a: {w: null, z: {k: v}}\nlist: [3]\n")
    (tmp_path / "text").write_text("line\n")
    options = ValueOptions(
        files=[tmp_path / "one.yaml", tmp_path / "two.yaml"],
        json=['a.j={"k": [1, null]},n=', "s=7"],
        set=["s=8"],
        strings=["number=1,flag=true"],
        from_files=[f"file={tmp_path}/text"],
        literal=["lit.x=a,b\\c={d}"],
    )
    assert options.values() == {
        "a": {"x": 1.0, "w": None, "z": {"k": "v"}, "j": {"k": [1.0, None]}},
        "list": [3.0],
        "n": None,
        "s": Int64(8),
        "number": "1",
        "flag": "true",
        "file": "line\n",
        "lit": {"x": "a,b\\c={d}"},
    }


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ChartError, match=r"nowhere\.yaml: No such file"):
        ValueOptions(files=["nowhere.yaml"]).values()
    (tmp_path / "bad.yaml").write_text("- a\n")
    with pytest.raises(ChartError, match=r"bad\.yaml.*cannot unmarshal array"):
        ValueOptions(files=[tmp_path / "bad.yaml"]).values()
    with pytest.raises(ChartError, match="failed parsing --set-json data"):
        ValueOptions(json=["a={"]).values()
