"""Names that generated code, paths and manifests can hold."""

from __future__ import annotations

import pytest

from ostinato.scaffold import ScaffoldError
from ostinato.scaffold.names import (
    check_group,
    check_image,
    check_kind,
    check_package,
    check_plural,
    check_project,
    check_version,
    function_of,
    kind_of_project,
    module_of,
    snake_case,
    variable_of,
)

HOSTILE = ["", ".", "..", "../up", "/etc", "a b", "a\nb", "-a", "a;rm -rf ~", "$(id)", "`id`", "a'b", 'a"b', "a: b"]
HOSTILE += ["a#b", "{a}", "<<name>>", "a\0b", "café", "\uff41", "a\u202eb", "x" * 300, "%s", "a\\b", "~", "*"]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "check", [check_group, check_image, check_kind, check_package, check_plural, check_project, check_version]
)
def test_hostile_names_are_refused(check, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ScaffoldError) as refused:
        check(text)
    assert repr(text) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("check", "text", "message"),
    [
        (check_project, "Tea_Shop", "beginning with a letter, for example tea-shop"),
        (check_project, "9lives", "for example lives"),
        (check_project, "msgspec", "is that of a package which the project needs"),
        (check_package, "class", "'class' is a keyword of Python; set another one with --package"),
        (check_package, "json", "'json' would hide the module of that name; set another one with --package"),
        (check_package, "ostinato", "would hide the module"),
        (check_package, "tests", "would hide the module"),
        (check_group, "shop", "want a domain name with a dot"),
        (check_group, "apps.k8s.io", "is reserved for Kubernetes"),
        (check_group, "Shop.example.dev", "want a domain name"),
        (check_version, "1", "want a version like v1, v1beta1 or v2alpha3"),
        (check_version, "v0", "want a version like"),
        (check_version, "v1gamma1", "want a version like"),
        (check_kind, "tea-pot", "in CamelCase, for example TeaPot"),
        (check_kind, "None", "'None' is a built-in name of Python"),
        (check_kind, "Exception", "is a built-in name of Python"),
        (check_kind, "Deployment", "generated modules import a class Deployment"),
        (check_kind, "Pod", "generated modules import a class PodSpec"),
        (check_kind, "X" * 51, "want at most 50 letters"),
    ],
)
def test_the_message_names_the_fix(check, text: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ScaffoldError) as refused:
        check(text)
    assert message in str(refused.value)


def test_good_names_pass() -> None:
    assert check_project("tea-shop2") == "tea-shop2"
    assert check_package("tea_shop2") == "tea_shop2"
    assert check_group("tea.example.dev") == "tea.example.dev"
    assert check_version("v2beta10") == "v2beta10"
    assert check_kind("HTTPRoute") == "HTTPRoute"
    assert check_plural("oxen") == "oxen"
    assert check_image("registry.example.com:5000/tea/pot@sha256:0f") == "registry.example.com:5000/tea/pot@sha256:0f"


def test_names_in_code_follow_from_the_kind() -> None:
    assert [snake_case(kind) for kind in ("Widget", "HTTPRoute", "TeaPotV2", "A", "CDN")] == [
        "widget",
        "http_route",
        "tea_pot_v2",
        "a",
        "cdn",
    ]
    assert variable_of("TeaPot") == "tea_pot"
    assert variable_of("HorizontalPodAutoscaler") == "autoscaler"
    assert [variable_of(kind) for kind in ("Class", "Object", "Ctx")] == ["class_object", "object_object", "ctx_object"]
    assert [function_of(module) for module in ("tea_pot", "proxy", "a", "var")] == [
        "tea_pots",
        "proxies",
        "as_controller",
        "vars_controller",
    ]
    assert [module_of(kind) for kind in ("Cup", "TestRun")] == ["cup", "kind_test_run"]
    assert [kind_of_project(name) for name in ("demo", "tea-shop-operator")] == ["Demo", "TeaShop"]
