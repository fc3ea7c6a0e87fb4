from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from ostinato.api.codec import ObjectError, to_dict
from ostinato.api.conditions import (
    Holder,
    conditions_of,
    find_condition,
    has_condition,
    is_condition_false,
    is_condition_true,
    remove_condition,
    set_condition,
)
from ostinato.api.markers import ListMap
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.api.time import Time


class WidgetStatus(Struct):
    conditions: Annotated[list[Condition], ListMap("type")] = []


class Widget(CustomResource, group="example.dev", version="v1"):
    status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)


class OldCondition(Struct):
    """As some built-in kinds have it: fewer fields, and a probe time."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None
    last_probe_time: Time | None = None


class OldStatus(Struct):
    conditions: list[OldCondition] = []


class Old(CustomResource, group="example.dev", version="v1"):
    status: OldStatus | None = None


class Blank(CustomResource, group="example.dev", version="v1"):
    pass


NOW, LATER = Time.parse("2026-01-31T12:00:00Z"), Time.parse("2026-01-31T13:00:00Z")


def ready(status: str = "True", **more: Any) -> Condition:
    return Condition(type="Ready", status=status, **({"reason": "AllUp"} | more))


@pytest.fixture(params=["typed", "dict", "list", "old"])
def holder(request: pytest.FixtureRequest) -> Holder:
    match request.param:
        case "typed":
            return Widget()
        case "dict":
            return {"kind": "Widget"}
        case "list":
            return []
    return Old(status=OldStatus())


def test_a_condition_that_is_new_is_added_with_the_time(holder: Holder) -> None:
    assert set_condition(holder, ready(), NOW)
    assert find_condition(holder, "Ready") == ready(last_transition_time=NOW)
    assert find_condition(holder, "Other") is None


def test_a_condition_that_did_not_change_is_not_touched(holder: Holder) -> None:
    set_condition(holder, ready(), NOW)
    assert not set_condition(holder, ready(), LATER)
    assert find_condition(holder, "Ready") == ready(last_transition_time=NOW)


def test_the_time_moves_only_with_the_status(holder: Holder) -> None:
    set_condition(holder, ready(), NOW)
    assert set_condition(holder, ready(message="still up", reason="Fine"), LATER)
    assert find_condition(holder, "Ready") == ready(message="still up", reason="Fine", last_transition_time=NOW)
    assert set_condition(holder, ready("False"), LATER)
    assert find_condition(holder, "Ready") == ready("False", last_transition_time=LATER)


def test_a_condition_may_name_its_own_time(holder: Holder) -> None:
    set_condition(holder, ready(last_transition_time=LATER), NOW)
    assert find_condition(holder, "Ready") == ready(last_transition_time=LATER)
    set_condition(holder, ready("Unknown", last_transition_time=NOW), LATER)
    assert find_condition(holder, "Ready") == ready("Unknown", last_transition_time=NOW)


def test_true_false_and_missing_are_three_things(holder: Holder) -> None:
    assert not is_condition_true(holder, "Ready")
    assert not is_condition_false(holder, "Ready")
    set_condition(holder, ready(), NOW)
    assert is_condition_true(holder, "Ready")
    set_condition(holder, ready("False"), NOW)
    assert is_condition_false(holder, "Ready")
    set_condition(holder, ready("Unknown"), NOW)
    assert has_condition(holder, "Ready", "Unknown")
    assert not is_condition_false(holder, "Ready")


def test_a_condition_is_removed(holder: Holder) -> None:
    set_condition(holder, ready(), NOW)
    set_condition(holder, Condition(type="Other", status="True", reason="X"), NOW)
    assert remove_condition(holder, "Ready")
    assert not remove_condition(holder, "Ready")
    assert find_condition(holder, "Ready") is None
    assert is_condition_true(holder, "Other")


def test_what_was_found_is_a_copy(holder: Holder) -> None:
    set_condition(holder, ready(), NOW)
    found = find_condition(holder, "Ready")
    assert found is not None
    found.status = "False"
    assert is_condition_true(holder, "Ready")


def test_observed_generation_is_set_if_the_condition_has_it() -> None:
    widget = Widget()
    set_condition(widget, ready(), NOW)
    assert set_condition(widget, ready(observed_generation=2), LATER)
    assert not set_condition(widget, ready(observed_generation=2), LATER)
    assert widget.status.conditions == [ready(observed_generation=2, last_transition_time=NOW)]
    old = Old(status=OldStatus())
    set_condition(old, ready(), NOW)
    assert not set_condition(old, ready(observed_generation=2), LATER)


def test_a_dict_stays_in_json_shape() -> None:
    widget: dict[str, Any] = {}
    set_condition(widget, ready(observed_generation=2), NOW)
    set_condition(widget, ready("False"), LATER)
    assert widget == {
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "AllUp",
                    "message": "",
                    "lastTransitionTime": "2026-01-31T13:00:00Z",
                }
            ]
        }
    }


def test_a_list_takes_what_is_added_in_the_form_of_its_items() -> None:
    dicts: list[Any] = [{"type": "Other", "status": "True"}]
    set_condition(dicts, ready(), NOW)
    assert isinstance(dicts[1], dict)
    odd: list[Any] = [None, 5]
    set_condition(odd, ready(), NOW)
    assert is_condition_true(odd, "Ready")
    olds: list[Any] = [OldCondition(type="Other", status="True")]
    set_condition(olds, ready(), NOW)
    assert isinstance(olds[1], OldCondition)


def test_message_is_always_written_since_schemas_require_it() -> None:
    assert to_dict(ready())["message"] == ""


def test_the_conditions_can_be_listed() -> None:
    widget = Widget(status=WidgetStatus(conditions=[ready()]))
    assert conditions_of(widget) == [ready()]
    assert conditions_of({"status": {"conditions": [{"type": "Ready"}]}}) == [{"type": "Ready"}]
    assert conditions_of({"status": "text"}) == []
    assert conditions_of({}) == []


@pytest.mark.parametrize("instance", [Blank(metadata=ObjectMeta(name="a")), Old(metadata=ObjectMeta(name="a"))])
def test_an_object_without_room_for_conditions_is_an_error(instance: CustomResource) -> None:
    assert not is_condition_true(instance, "Ready")
    with pytest.raises(ObjectError, match=r" a: status\.conditions: not a list; set a status with conditions first"):
        set_condition(instance, ready(), NOW)


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"status": []}, "status: expected dict, got list"),
        ({"status": {"conditions": {}}}, "status.conditions: expected list, got dict"),
    ],
)
def test_a_dict_of_another_shape_is_an_error(odd: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError) as caught:
        set_condition(odd, ready(), NOW)
    assert str(caught.value) == message
