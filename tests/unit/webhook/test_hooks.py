"""What may be declared as a hook, what follows from the declaration, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from tests.unit.webhook.samples import Widget, WidgetV2, admission_review, asked, widget

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import CustomResource, Object
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Namespace, Pod
from ostinato.webhook import AdmissionRequest, Dispatcher, Webhooks, converter, defaulter, validator
from ostinato.webhook.configuration import UrlEndpoint
from ostinato.world import Simulation


def nothing(widget: Widget) -> None: ...


@pytest.mark.parametrize(
    ("kind", "path", "name"),
    [
        (Widget, "validate-example-dev-v1-widget", "validate.v1.widgets.example.dev"),
        (Pod, "validate--v1-pod", "validate.v1.pods.core"),
        (Deployment, "validate-apps-v1-deployment", "validate.v1.deployments.apps"),
        (
            GroupVersionKind("batch.tutorial.io", "v1beta1", "CronTab"),
            "validate-batch-tutorial-io-v1beta1-crontab",
            "validate.v1beta1.crontabs.batch.tutorial.io",
        ),
    ],
)
def test_path_and_name_follow_from_the_kind(kind: Any, path: str, name: str) -> None:
    hook = validator(kind)(lambda thing: None)
    assert (hook.path, hook.name) == ("/" + path, name)
    mutating = defaulter(kind)(lambda thing: None)
    assert (mutating.path, mutating.name) == (
        "/" + path.replace("validate", "mutate", 1),
        name.replace("validate", "mutate", 1),
    )


def test_the_kind_may_follow_from_the_annotation() -> None:
    @validator
    def check(widget: Widget) -> None: ...

    @defaulter(operations=["CREATE"])
    async def fill_in(widget: Widget) -> None: ...

    assert check.kind.gvk == fill_in.kind.gvk == GroupVersionKind("example.dev", "v1", "Widget")
    assert fill_in.operations == ("CREATE",)


def test_a_hook_is_still_a_function() -> None:
    @validator(Widget)
    def check(widget: Widget, old: Widget | None = None) -> str:
        return "seen"

    @converter
    def upgrade(widget: Widget) -> WidgetV2:
        return WidgetV2()

    assert check(Widget()) == "seen"
    assert upgrade(Widget()) == WidgetV2()
    assert repr(check) == "<validator check of example.dev/v1, Kind=Widget>" or "check" in repr(check)
    assert "from example.dev/v1, Kind=Widget to example.dev/v2" in repr(upgrade)


class Checker:
    def check(self, widget: Widget, request: AdmissionRequest) -> str:
        return f"by {request.user.username}"

    async def __call__(self, widget: Widget) -> str:
        return type(widget).__name__


def with_prefix(prefix: str, widget: Widget) -> str:
    return prefix + widget.metadata.name


@pytest.mark.parametrize(
    ("function", "warning"),
    [
        (Checker().check, "by jane"),
        (Checker(), "Widget"),
        (partial(with_prefix, "it is "), "it is a"),
        (lambda thing: type(thing).__name__, "Widget"),
        (lambda thing, *rest, more=1, **named: "optional ones are left alone", "optional ones are left alone"),
    ],
)
def test_methods_objects_partials_and_lambdas_can_be_hooks(function: Any, warning: str) -> None:
    assert asked(validator(Widget)(function), admission_review(widget())).warnings == [warning]


def test_a_hook_annotated_with_dict_receives_a_dict() -> None:
    def plain(thing: dict) -> str:  # type: ignore[type-arg]
        return type(thing).__name__

    def generic(thing: dict[str, Any]) -> str:
        return type(thing).__name__

    def mapping(thing: Mapping[str, Any]) -> str:
        return type(thing).__name__

    for function in (plain, generic, mapping):
        assert asked(validator(Widget)(function), admission_review(widget())).warnings == ["dict"]


def test_a_local_class_need_not_be_found_by_its_annotation() -> None:
    class Local(CustomResource, group="example.dev", version="v1", kind="Widget"): ...

    @validator(Local)
    def check(thing: Local) -> str:
        return type(thing).__name__

    assert asked(check, admission_review(widget())).warnings == ["Local"]


def test_a_base_class_may_be_annotated() -> None:
    @validator(Widget)
    def check(thing: Object) -> str:
        return type(thing).__name__

    assert asked(check, admission_review(widget())).warnings == ["Widget"]


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: validator(Widget)(lambda: None), "the first parameter must be the object"),
        (lambda: validator(Widget)(lambda *things: None), "the first parameter must be the object"),
        (lambda: validator(Widget)(lambda thing, previous: None), "unknown parameter 'previous'; use old or request"),
        (lambda: validator(lambda thing: None), "no kind; annotate the first parameter, or pass it"),
        (lambda: validator(WidgetV2)(nothing), "declared for WidgetV2, but annotated with Widget"),
        (lambda: validator(int), "is not a kind"),
        (lambda: validator("Widget"), "is not a kind"),
        (lambda: validator(GroupVersionKind("example.dev", "v1", "Widget"))(nothing), "pass the class Widget"),
        (lambda: validator(CustomResource)(lambda thing: None), "CustomResource is not a kind"),
        (lambda: validator(Widget, operations="CREATE")(nothing), "operations must be a list"),
        (lambda: validator(Widget, operations=["create"])(nothing), "unknown operation 'create'; operations: CREATE"),
        (lambda: defaulter(Widget, operations=["DELETE"])(nothing), "a defaulter cannot handle DELETE"),
        (lambda: validator(Widget, path="check")(nothing), "path 'check' does not match"),
        (lambda: validator(Widget, path="/a b")(nothing), "path '/a b' does not match"),
        (lambda: validator(Widget, name="check")(nothing), "needs three parts"),
        (
            lambda: validator(Widget, name="Check.Widgets.dev")(nothing),
            "name 'Check.Widgets.dev': a lowercase RFC 1123",
        ),
        (lambda: validator(Widget, timeout_seconds=31)(nothing), "between 1 and 30"),
        (lambda: validator(Widget, timeout_seconds="5")(nothing), "between 1 and 30"),  # type: ignore[call-overload]
        (
            lambda: validator(Widget, failurePolicy="Ignore")(nothing),
            "unknown option 'failurePolicy'; options: op",
        ),  # type: ignore[call-overload]
        (
            lambda: validator(Widget, failure_policy="ignore")(nothing),
            "failure_policy must be Fail or Ignore, not",
        ),  # type: ignore[call-overload]
        (lambda: validator(Widget, subresources="status")(nothing), "subresources must be a list, not 'status'"),
        (
            lambda: validator(Widget, subresources=["status", "scale"])(nothing),
            "objects of the subresource scale are not a Widget; annotate the first parameter as a dict",
        ),
        (lambda: validator(Widget, rules={"operations": ["*"]})(nothing), "rules must be a list, not {"),  # type: ignore[call-overload]
        (
            lambda: Webhooks(endpoint=UrlEndpoint("https://a"), name="My hooks"),
            "Webhooks() invalid name 'My hooks': a lowercase RFC 1123",
        ),
        (
            lambda: validator(Widget, reinvocation_policy="IfNeeded")(nothing),
            "policy is for defaulters only",
        ),
        (lambda: converter(lambda thing: None), "annotate the parameter and the result"),
        (lambda: converter(Widget, Pod)(lambda thing: None), "are not two versions of one kind"),
        (lambda: converter(Widget, Widget)(lambda thing: None), "are not two versions of one kind"),
    ],
)
def test_invalid_hooks_are_rejected_at_declaration(declare: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        declare()
    assert words in str(refused.value)


def test_a_converter_has_nothing_to_wait_for() -> None:
    async def upgrade(widget: Widget) -> WidgetV2:
        return WidgetV2()

    with pytest.raises(TypeError, match="a converter must not be async"):
        converter(upgrade)


def test_a_converter_without_known_classes_names_the_option() -> None:
    class Local(CustomResource, group="example.dev", version="v4", kind="Widget"): ...

    def upgrade(widget: Local) -> Widget:
        return Widget()

    with pytest.raises(TypeError, match="pass the classes: @converter"):
        converter(upgrade)
    assert converter(Local, Widget)(upgrade).target is Widget


def test_two_hooks_at_one_path_are_refused() -> None:
    @validator(Widget)
    def other(widget: Widget) -> None: ...

    first = validator(Widget)(nothing)
    with pytest.raises(ValueError, match="other: path /validate-example-dev-v1-widget is used by nothing"):
        Dispatcher(Simulation(1)).add([first, other])
    with pytest.raises(ValueError, match="is used by nothing"):
        Webhooks(first, other, endpoint=UrlEndpoint("https://127.0.0.1:9443"))
    with pytest.raises(ValueError, match="path /convert is used by conversion"):
        Dispatcher(Simulation(1)).add([validator(Widget, path="/convert")(nothing)])
    Dispatcher(Simulation(1)).add([first, validator(Widget, path="/validate-again")(nothing)])


def test_a_function_that_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="is not a hook; decorate it with @validator"):
        Dispatcher(Simulation(1)).add([nothing])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="is not a hook"):
        Webhooks(nothing, endpoint=UrlEndpoint("https://127.0.0.1:9443"))  # type: ignore[arg-type]


def test_cluster_scoped_kinds_are_declared_like_others() -> None:
    assert validator(Namespace)(lambda thing: None).kind.namespaced is False
