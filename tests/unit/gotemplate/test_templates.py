"""Sets of templates: functions, missing keys, templates that call each other, and what data may be."""

from __future__ import annotations

import pytest

from ostinato.gotemplate import (
    ExecutionError,
    Function,
    Int64,
    Map,
    Object,
    ParseError,
    State,
    Strings,
    TemplateError,
    Templates,
)


def rendered(text: str, data: object = None, **options: object) -> str:
    templates = Templates(**options)  # type: ignore[arg-type]
    templates.parse("page", text)
    return templates.render("page", data)


def failure(text: str, data: object = None, **options: object) -> str:
    with pytest.raises(TemplateError) as raised:
        rendered(text, data, **options)
    return str(raised.value)


def test_templates_call_each_other_by_name() -> None:
    templates = Templates()
    templates.parse("helpers", '{{ define "name" }}<{{ .name }}>{{ end }}')
    templates.parse("page", '{{ template "name" .web }}{{ template "name" .db }}')
    assert templates.render("page", {"web": {"name": "w"}, "db": {"name": "d"}}) == "<w><d>"
    assert templates.names == ["helpers", "name", "page"]


def test_a_later_definition_replaces_an_earlier_one_unless_it_is_empty() -> None:
    templates = Templates()
    templates.parse("a", '{{ define "x" }}first{{ end }}')
    templates.parse("b", '{{ define "x" }}second{{ end }}{{ template "x" }}')
    templates.parse("c", '{{ define "x" }}  {{ end }}')
    assert templates.render("b", None) == "second"


@pytest.mark.parametrize(
    ("missing_key", "result"), [("default", "<no value>|<no value>"), ("zero", "<no value>|nil"), ("error", "")]
)
def test_a_missing_key_is_no_value_nil_or_an_error(missing_key: str, result: str) -> None:
    text = "{{ .a }}|{{ .a.b }}"
    if missing_key == "default":
        assert rendered(text, {}, missing_key=missing_key) == result
    elif missing_key == "zero":
        assert failure(text, {}, missing_key=missing_key).endswith("nil pointer evaluating interface {}.b")
    else:
        assert failure(text, {}, missing_key=missing_key).endswith('at <.a>: map has no entry for key "a"')


def test_functions_get_none_for_nil_and_for_missing_keys() -> None:
    seen = []
    functions = {"see": lambda value: seen.append(value) or ""}
    rendered("{{ see .a }}{{ see .b }}{{ see nil }}{{ .b | see }}", {"a": None}, functions=functions)
    assert seen == [None, None, None, None]


def test_annotations_are_checked_with_the_messages_of_go() -> None:
    def repeat(count: int, text: str) -> str:
        return text * count

    functions = {"repeat": repeat}
    assert rendered('{{ repeat 3 "a" }}{{ "b" | repeat 2 }}', functions=functions) == "aaabb"
    assert failure("{{ repeat 3 .x }}", {"x": 1.5}, functions=functions).endswith(
        "at <.x>: wrong type for value; expected string; got float64"
    )
    assert failure("{{ repeat .x 3 }}", {"x": 1.5}, functions=functions).endswith(
        "at <.x>: wrong type for value; expected int; got float64"
    )
    assert failure("{{ repeat true 3 }}", functions=functions).endswith("at <true>: expected integer; found true")
    assert failure("{{ repeat 3 }}", functions=functions).endswith("wrong number of args for repeat: want 2 got 1")


def test_call_calls_values_that_are_functions() -> None:
    data = {
        "add": Function(lambda *values: sum(values), ["int"], "int"),
        "one": Function(lambda text: text, ["string"]),
    }
    assert rendered('{{ call .add 1 }}{{ call .add 1 2 }}{{ call .one "a" }}{{ "b" | call .one }}', data) == "13ab"
    assert failure("{{ call .add }}", data).endswith("wrong number of args for .add: got 0 want at least 1")
    assert failure("{{ call .one 1 2 }}", data).endswith("wrong number of args for .one: got 2 want 1")
    assert failure("{{ call .one }}", data).endswith("wrong number of args for .one: got 0 want 1")


def test_literals_have_the_type_of_the_parameter() -> None:
    functions = {"show": Function(lambda small, text: f"{small!r}{text!r}", ["uint8", "float64"])}
    assert rendered("{{ show 5 3 }}{{ show 'a' 1e3 }}", functions=functions) == "53.0971000.0"
    assert failure("{{ show -5 3 }}", functions=functions).endswith("expected unsigned integer; found -5")
    assert failure("{{ show +5 3 }}", functions=functions).endswith("expected unsigned integer; found +5")
    assert failure("{{ show 5 true }}", functions=functions).endswith("expected float; found true")


def test_maps_of_other_types_are_assignable_to_the_type_that_they_are_made_of() -> None:
    class Texts(Map):
        go_type = "chart.Texts"
        element = "string"

    data = {"x": Texts(a="b"), "y": {"a": "b"}}
    for wanted, fits in (("chart.Texts", "x"), ("map[string]string", "x"), ("map[string]interface {}", "y")):
        functions = {"count": Function(len, [wanted])}
        assert rendered(f"{{{{ count .{fits} }}}}", data, functions=functions) == "1"
        other = "y" if fits == "x" else "x"
        assert f"wrong type for value; expected {wanted}" in failure(
            f"{{{{ count .{other} }}}}", data, functions=functions
        )


def test_declared_types_are_checked_too() -> None:
    functions = {"join": Function("+".join, ["[]string"])}
    assert rendered("{{ join .x }}", {"x": Strings(["a", "b"])}, functions=functions) == "a+b"
    assert failure("{{ join .x }}", {"x": ["a", "b"]}, functions=functions).endswith(
        "wrong type for value; expected []string; got []interface {}"
    )


def test_errors_of_functions_name_the_function_and_the_place() -> None:
    def refuse(text: str) -> str:
        raise ValueError(f"refused {text}")

    with pytest.raises(ExecutionError) as raised:
        rendered('a\n  {{ "x" | refuse }}', functions={"refuse": refuse})
    assert str(raised.value) == ('template: page:2:11: executing "page" at <refuse>: error calling refuse: refused x')


def test_a_function_with_the_state_renders_other_templates() -> None:
    def include(state: State, name: str, data: object) -> str:
        return state.render(name, data)

    def tpl(state: State, text: str, data: object) -> str:
        return state.render_text("inline", text, data)

    functions = {"include": include, "tpl": tpl}
    text = '{{ define "x" }}[{{ . }}]{{ end }}{{ include "x" 1 | printf "%s!" }}{{ tpl .t . }}'
    assert rendered(text, {"t": '{{ include "x" .v }}', "v": 2}, functions=functions) == "[1]![2]"
    assert failure(text, {"t": "{{ .v.w }}", "v": 2}, functions=functions) == (
        'template: page:1:71: executing "page" at <tpl .t .>: error calling tpl: '
        'template: inline:1:5: executing "inline" at <.v.w>: can\'t evaluate field w in type interface {}'
    )


def test_what_a_text_defines_is_forgotten_after_it() -> None:
    def tpl(state: State, text: str) -> str:
        return state.render_text("inline", text, None)

    text = '{{ tpl .t }}{{ template "y" }}'
    data = {"t": '{{ define "y" }}y{{ end }}{{ template "y" }}'}
    assert failure(text, data, functions={"tpl": tpl}).endswith('template "y" not defined')


def test_objects_have_fields_and_methods_and_nothing_else() -> None:
    version = Object({"Major": "1"}, {"Has": lambda name: name == "x"}, go_type="*chart.Version")
    data = {"v": version}
    assert rendered('{{ .v.Major }}{{ .v.Has "x" }}{{ .v.Has .v.Major }}', data) == "1truefalse"
    assert failure("{{ .v.fields }}", data).endswith("can't evaluate field fields in type interface {}")
    assert failure("{{ .v.Has }}", data).endswith("wrong number of args for Has: want 1 got 0")
    assert failure("{{ .v.Major 1 }}", data).endswith("Major has arguments but cannot be invoked as function")


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyError("no"), TypeError("no"), AttributeError("no"), ZeroDivisionError("no")]
)
def test_what_functions_and_methods_raise_is_an_error_of_the_template(error: Exception) -> None:
    def refuse() -> str:
        raise error

    for text in ("{{ refuse }}", "{{ .v.refuse }}", "{{ print (refuse) }}"):
        message = failure(text, {"v": Object(methods={"refuse": refuse})}, functions={"refuse": refuse})
        assert "error calling refuse: " in message
        assert message.startswith("template: page:1:")


def test_methods_of_maps_hide_their_keys() -> None:
    class Files(Map):
        go_type = "engine.files"
        methods = {"Get": lambda name: f"<{name}>"}

    assert rendered('{{ .Get "a" }}{{ .other }}', Files(Get="key", other="o")) == "<a>o"


@pytest.mark.parametrize("value", [object(), object, print, iter([]), {1, 2}, 1j, range(3)])
def test_other_python_objects_cannot_be_used(value: object) -> None:
    for text in ("{{ .x }}", "{{ .x.__class__ }}", '{{ printf "%v" .x }}', "{{ len .x }}", "{{ range .x }}{{ end }}"):
        message = failure(text, {"x": value})
        assert "0x7" not in message
        assert "<built-in" not in message


@pytest.mark.parametrize("name", ["__class__", "__init__", "keys", "items", "format", "upper", "real", "append"])
def test_attributes_of_values_are_not_fields(name: str) -> None:
    for value in ({}, [], "s", 1, 1.5, True, b"b", Int64(1)):
        text = f"{{{{ .x.{name} }}}}"
        if value == {}:
            assert rendered(text, {"x": value}) == "<no value>"
        else:
            assert failure(text, {"x": value}).endswith(f"can't evaluate field {name} in type interface {{}}")


def test_a_text_is_parsed_once_by_a_set_and_its_copies() -> None:
    templates = Templates()
    text = '{{ define "x" }}{{ . }}{{ end }}{{ template "x" .a }}'
    first, second = templates.copy(), templates.copy()
    assert first.parse("page", text) is second.parse("page", text)
    assert first.lookup("x") is second.lookup("x")
    assert templates.lookup("x") is None
    assert first.parse("other", text) is not second.lookup("page")
    second.parse("more", '{{ define "x" }}replaced{{ end }}')
    assert [each.render("page", {"a": 1}) for each in (first, second)] == ["1", "replaced"]


def test_texts_that_were_parsed_are_not_kept_without_bounds() -> None:
    templates = Templates()
    kept = templates.parse("page", "first")
    for number in range(50):
        templates.copy().parse("page", f"{number}" + "x" * 100_000)
    assert templates.copy().parse("page", "first") is not kept
    assert templates.render("page", None) == "first"


def test_unknown_functions_are_errors_of_the_parser() -> None:
    with pytest.raises(ParseError, match=r'^template: page:1: function "nope" not defined$'):
        rendered("{{ nope }}")
