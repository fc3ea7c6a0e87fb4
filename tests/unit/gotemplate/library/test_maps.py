"""The sets of functions of each tool."""

from __future__ import annotations

import pytest

from ostinato.gotemplate import ParseError, Templates
from ostinato.gotemplate.library import helm_functions, kudo_functions, sprig_functions
from ostinato.world import World


def test_no_set_reads_the_environment_or_the_network() -> None:
    for functions in (sprig_functions, helm_functions, kudo_functions):
        made = functions(World.real())
        assert not {"env", "expandenv"} & set(made)
        assert made["getHostByName"]("localhost") == ""


def test_the_sets_differ_as_the_tools_do() -> None:
    sprig, helm, kudo = (set(each(World.real())) for each in (sprig_functions, helm_functions, kudo_functions))
    of_helm = {"toYaml", "toYamlPretty", "fromYaml", "fromYamlArray", "fromJsonArray", "toToml", "fromToml"}
    assert helm - sprig == of_helm | {"mustToYaml", "mustToToml"}
    assert sprig - helm == set()
    assert kudo == sprig - {"base", "dir", "clean", "ext", "isAbs"} | {"toYaml"}
    assert len(sprig) == 209


def test_kudo_keeps_the_newline_of_yaml_and_fails_for_missing_keys() -> None:
    templates = Templates(kudo_functions(World.real()), missing_key="error")
    templates.parse("t", "{{ toYaml .Params }}|")
    assert templates.render("t", {"Params": {"b": ["x"], "a": "yes"}}) == 'a: "yes"\nb:\n- x\n|'
    with pytest.raises(ParseError, match='function "base" not defined'):
        templates.parse("u", '{{ base "a/b" }}')
