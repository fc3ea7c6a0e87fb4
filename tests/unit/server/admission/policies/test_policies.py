"""Admission policies: who is asked about a write, with what, and what comes of it."""

from __future__ import annotations

from typing import Any

from tests.stage.api import Answer, Api, Json, asking

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_MAPS = "/api/v1/namespaces/default/configmaps"
_FOR_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


async def _validating(api: Api, *expressions: str, binding: Json | None = None, **spec: Any) -> Answer:
    spec = {
        "matchConstraints": {"resourceRules": [_FOR_MAPS]},
        "validations": [{"expression": text} for text in expressions],
        **spec,
    }
    made = await api.post(f"{_GROUP}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    if made.code == 201:
        bound = {"policyName": "p", "validationActions": ["Deny"], **(binding or {})}
        await api.post(f"{_GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})
    return made


async def _mutating(api: Api, name: str, expression: str, kind: str = "ApplyConfiguration", **spec: Any) -> Answer:
    field = kind[0].lower() + kind[1:] if kind == "ApplyConfiguration" else "jsonPatch"
    spec = {
        "matchConstraints": {"resourceRules": [_FOR_MAPS]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": kind, field: {"expression": expression}}],
        **spec,
    }
    made = await api.post(f"{_GROUP}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    if made.code == 201:
        bound = {"metadata": {"name": name}, "spec": {"policyName": name}}
        await api.post(f"{_GROUP}/mutatingadmissionpolicybindings", bound)
    return made


def _map(name: str = "m", data: Json | None = None, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "data": data or {"a": "b"}}


def _causes(made: Answer) -> list[tuple[str, str]]:
    return [(cause["field"], cause["message"]) for cause in made.body["details"]["causes"]]


@asking
async def test_a_write_that_breaks_a_policy_is_refused(api: Api) -> None:
    await _validating(api, "object.metadata.name != 'bad'")
    assert (await api.post(_MAPS, _map("good"))).code == 201
    refused = await api.post(_MAPS, _map("bad"))
    assert refused.code == 422
    assert refused.message == (
        "configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed "
        "expression: object.metadata.name != 'bad'"
    )


@asking
async def test_a_policy_without_a_binding_is_not_evaluated(api: Api) -> None:
    await _validating(api, "false", binding={"policyName": "other"})
    assert (await api.post(_MAPS, _map())).code == 201


@asking
async def test_a_policy_is_not_evaluated_for_other_kinds_and_operations(api: Api) -> None:
    await _validating(api, "false")
    assert (await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})).code == 201
    assert (await api.post(_MAPS, _map())).code == 422
    await api.ask("DELETE", f"{_GROUP}/validatingadmissionpolicies/p")
    assert (await api.post(_MAPS, _map())).code == 201
    assert (await api.ask("DELETE", f"{_MAPS}/m")).code == 200


@asking
async def test_an_update_policy_sees_the_old_object(api: Api) -> None:
    await _validating(api, "oldObject == null || object.data == oldObject.data")
    await api.post(_MAPS, _map())
    assert (await api.merge(f"{_MAPS}/m", {"metadata": {"labels": {"x": "y"}}})).code == 200
    assert (await api.merge(f"{_MAPS}/m", {"data": {"a": "c"}})).code == 422


@asking
async def test_variables_are_computed_from_each_other(api: Api) -> None:
    variables = [
        {"name": "keys", "expression": "object.data.map(k, k)"},
        {"name": "count", "expression": "size(variables.keys)"},
    ]
    await _validating(api, "variables.count < 3", variables=variables)
    assert (await api.post(_MAPS, _map(data={"a": "1", "b": "2"}))).code == 201
    assert (await api.post(_MAPS, _map("n", {"a": "1", "b": "2", "c": "3"}))).code == 422


@asking
async def test_a_variable_that_fails_is_named(api: Api) -> None:
    await _validating(api, "variables.x > 1", variables=[{"name": "x", "expression": "object.spec.x"}])
    refused = await api.post(_MAPS, _map())
    assert refused.message.endswith(
        "denied request: expression 'variables.x > 1' resulted in error: composited variable \"x\" fails to evaluate: "
        "no such key: spec"
    )


@asking
async def test_an_expression_that_fails_refuses_unless_the_policy_ignores_failures(api: Api) -> None:
    await _validating(api, "object.spec.x > 1")
    assert (await api.post(_MAPS, _map())).code == 422
    await api.merge(f"{_GROUP}/validatingadmissionpolicies/p", {"spec": {"failurePolicy": "Ignore"}})
    assert (await api.post(_MAPS, _map())).code == 201


@asking
async def test_match_conditions_select_the_evaluated_requests(api: Api) -> None:
    conditions = [{"name": "loud", "expression": "request.userInfo.username == 'admin' && object.metadata.name != 'x'"}]
    await _validating(api, "false", matchConditions=conditions)
    assert (await api.post(_MAPS, _map("x"))).code == 201
    assert (await api.post(_MAPS, _map("y"))).code == 422


@asking
async def test_selectors_of_namespaces_and_objects_narrow_a_binding(api: Api) -> None:
    match = {"objectSelector": {"matchLabels": {"held": "yes"}}, "namespaceSelector": {"matchLabels": {"a": "b"}}}
    await _validating(api, "false", binding={"matchResources": match})
    assert (await api.post(_MAPS, _map("m", labels={"held": "yes"}))).code == 201
    await api.merge("/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}})
    assert (await api.post(_MAPS, _map("n", labels={"held": "yes"}))).code == 422
    assert (await api.post(_MAPS, _map("n"))).code == 201


@asking
async def test_a_policy_takes_its_parameters_from_the_object_that_a_binding_names(api: Api) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    conditions = [{"name": "others", "expression": "object.metadata.name != 'limits'"}]
    binding = {"paramRef": reference}
    await _validating(
        api, "size(object.data) <= int(params.data.most)", paramKind=kind, binding=binding, matchConditions=conditions
    )
    missing = await api.post(_MAPS, _map("m"))
    assert missing.message.endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    await api.merge(
        f"{_GROUP}/validatingadmissionpolicybindings/b", {"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}}
    )
    assert (await api.post(_MAPS, _map("limits", {"most": "1"}))).code == 201
    assert (await api.post(_MAPS, _map("m"))).code == 201
    assert (await api.post(_MAPS, _map("n", {"a": "1", "b": "2"}))).code == 422


@asking
async def test_every_parameter_that_a_selector_finds_counts(api: Api) -> None:
    for name in ("one", "two"):
        await api.post(_MAPS, _map(name, {"most": "9" if name == "one" else "1"}, labels={"limits": "yes"}))
    reference = {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await _validating(
        api, "size(object.data) <= int(params.data.most)", paramKind=kind, binding={"paramRef": reference}
    )
    assert (await api.post(_MAPS, _map("m", {"a": "1", "b": "2"}))).code == 422


@asking
async def test_a_policy_whose_parameters_are_of_no_known_kind_refuses(api: Api) -> None:
    await _validating(api, "true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"})
    refused = await api.post(_MAPS, _map())
    assert refused.message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced "
        "by paramKind: 'example.com/v1, Kind=Limit'"
    )


@asking
async def test_the_authorizer_in_a_policy_allows_administrators(api: Api) -> None:
    await _validating(api, "authorizer.group('').resource('pods').namespace('x').check('create').allowed()")
    assert (await api.post(_MAPS, _map())).code == 201


@asking
async def test_a_policy_that_costs_too_much_is_stopped(api: Api) -> None:
    await _validating(api, "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'x')))")
    refused = await api.post(_MAPS, _map(data={f"k{i}": "v" for i in range(300)}))
    assert "operation cancelled: actual cost limit exceeded" in refused.message


@asking
async def test_invalid_expressions_are_reported_with_their_field(api: Api) -> None:
    made = await _validating(
        api,
        "object.x >",
        "1 + 1",
        "variables.v",
        variables=[{"name": "v", "expression": "nothing"}, {"name": "a-b", "expression": "1"}],
        matchConditions=[{"name": "c", "expression": "variables.v"}],
        auditAnnotations=[{"key": "k", "valueExpression": "1"}],
    )
    assert [field for field, _ in _causes(made)] == [
        "spec.matchConditions[0].expression",
        "spec.variables[0].expression",
        "spec.variables[1].name",
        "spec.validations[0].expression",
        "spec.validations[1].expression",
        "spec.validations[2].expression",
        "spec.auditAnnotations[0].valueExpression",
    ]
    messages = dict(_causes(made))
    assert messages["spec.validations[1].expression"].endswith("must evaluate to bool but got int")


@asking
async def test_an_apply_configuration_is_merged_into_the_object(api: Api) -> None:
    await _mutating(
        api, "p", "Object{metadata: Object.metadata{labels: {'n': object.metadata.name}}, data: {'x': 'y'}}"
    )
    made = await api.post(_MAPS, _map(labels={"own": "1"}))
    assert (made.body["metadata"]["labels"], made.body["data"]) == ({"n": "m", "own": "1"}, {"a": "b", "x": "y"})


@asking
async def test_a_json_patch_is_computed_and_applied(api: Api) -> None:
    await _mutating(
        api,
        "p",
        "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', "
        "path: '/metadata/annotations/' + jsonpatch.escapeKey('a.b/c'), value: string(size(object.data))}, "
        "JSONPatch{op: 'remove', path: '/data/a'}]",
        "JSONPatch",
    )
    made = await api.post(_MAPS, _map(data={"a": "1", "b": "2"}))
    assert (made.body["metadata"]["annotations"], made.body["data"]) == ({"a.b/c": "2"}, {"b": "2"})


@asking
async def test_a_patch_whose_test_fails_changes_nothing(api: Api) -> None:
    await _mutating(api, "p", "[JSONPatch{op: 'test', path: '/data/a', value: 'z'}]", "JSONPatch")
    assert (await api.post(_MAPS, _map())).body["data"] == {"a": "b"}


@asking
async def test_a_mutation_that_fails_refuses_the_write(api: Api) -> None:
    await _mutating(api, "p", "Object{metadata: Object.metadata{labels: {'n': object.nothing}}}")
    refused = await api.post(_MAPS, _map())
    assert (refused.code, refused.body["reason"]) == (403, "Invalid")
    assert refused.message == (
        "policy 'p' with binding 'p' denied request: expression 'Object{metadata: Object.metadata{labels: {'n': "
        "object.nothing}}}' resulted in error: no such key: nothing"
    )


@asking
async def test_a_message_must_say_where_it_stands(api: Api) -> None:
    await _mutating(api, "p", "Object{metadata: Object.spec{labels: {'n': 'm'}}}")
    refused = await api.post(_MAPS, _map())
    assert 'unexpected type name "Object.spec", expected "Object.metadata"' in refused.message


@asking
async def test_an_apply_configuration_must_not_set_atomic_fields(api: Api) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}
    await _mutating(
        api, "p", "Object{spec: Object.spec{selector: {'a': 'b'}}}", matchConstraints={"resourceRules": [rule]}
    )
    made = await api.post(
        "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}
    )
    assert "may not mutate atomic arrays, maps or structs: .spec.selector" in made.message


@asking
async def test_a_policy_is_reinvoked_if_a_later_one_changed_the_object(api: Api) -> None:
    count = "Object{data: {'seen': string(size(object.data))}}"
    await _mutating(api, "a", count, reinvocationPolicy="IfNeeded")
    await _mutating(api, "b", "Object{data: {'more': '1'}}")
    assert (await api.post(_MAPS, _map())).body["data"] == {"a": "b", "more": "1", "seen": "3"}


@asking
async def test_a_policy_that_mutates_must_make_an_object(api: Api) -> None:
    made = await _mutating(api, "p", "{'a': 'b'}", reinvocationPolicy="Sometimes")
    assert [field for field, _ in _causes(made)] == [
        "spec.mutations[0].applyConfiguration.expression",
        "spec.reinvocationPolicy",
    ]
