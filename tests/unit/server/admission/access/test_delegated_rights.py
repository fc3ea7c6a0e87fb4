"""Rights that a write takes besides those to the object itself: to a signer, to the parameters of policies, to exec."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from tests.stage.api import MERGE, Answer, Api, asking

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
JANE = "&{jane  [dev system:authenticated] map[]}"
MATCH = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}


async def let_jane(api: Api, name: str, group: str, resources: str, verbs: str, *names: str) -> None:
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), "resourceNames": names}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    role, subject = {"kind": "ClusterRole", "name": name}, {"kind": "User", "name": "jane"}
    sent = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/clusterrolebindings", sent)).code == 201


async def jane(api: Api, method: str, path: str, sent: Any) -> Answer:
    media = MERGE if method == "PATCH" else "application/json"
    return await api.ask(method, path, sent, authorization="Bearer jane", content_type=media)


def signing_request(name: str) -> dict[str, Any]:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "jane")])
    made = (
        x509.CertificateSigningRequestBuilder().subject_name(subject).sign(generate_private_key(SECP256R1()), SHA256())
    )
    request = base64.b64encode(made.public_bytes(Encoding.PEM)).decode()
    spec = {"signerName": "example.com/signer", "usages": ["client auth"], "request": request}
    return {"metadata": {"name": name}, "spec": spec}


def condition(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "r", "message": "m"}]}}


@asking
async def test_approving_and_signing_needs_permission_on_the_signer(api: Api) -> None:
    group, resource = "certificates.k8s.io", "certificatesigningrequests"
    await let_jane(api, "write", group, f"{resource} {resource}/approval {resource}/status", "patch")
    await api.post(REQUESTS, signing_request("a"))
    for subresource, kind, verb in (("approval", "Approved", "approve"), ("status", "Failed", "sign")):
        refused = await jane(api, "PATCH", f"{REQUESTS}/a/{subresource}", condition(kind))
        why = f'user not permitted to {verb} requests with signerName "example.com/signer"'
        assert (refused.code, refused.message) == (403, f'{resource}.{group} "a" is forbidden: {why}')
    assert (await jane(api, "PATCH", f"{REQUESTS}/a/status", {"metadata": {"labels": {"a": "b"}}})).code == 200
    await let_jane(api, "sign", group, "signers", "approve sign", "example.com/*")
    assert (await jane(api, "PATCH", f"{REQUESTS}/a/approval", condition("Approved"))).code == 200


def policy(kind: str, parameters: dict[str, str] | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"matchConstraints": MATCH}
    if kind == "validating":
        spec["validations"] = [{"expression": "true"}]
    else:
        change = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
        spec |= {"reinvocationPolicy": "Never", "mutations": [change]}
    return {"metadata": {"name": "p"}, "spec": spec | ({"paramKind": parameters} if parameters else {})}


@pytest.mark.parametrize("kind", ["validating", "mutating"])
def test_writing_a_policy_needs_read_access_to_its_parameters(kind: str) -> None:
    @asking
    async def check(api: Api) -> None:
        path = f"{POLICIES}/{kind}admissionpolicies"
        await let_jane(api, "write", "admissionregistration.k8s.io", "*", "*")
        refused = await jane(api, "POST", path, policy(kind, {"apiVersion": "v1", "kind": "Secret"}))
        named = "kind=Secret, apiVersion=v1"
        why = f'user {JANE} must have "get" permission on all objects of the referenced paramKind ({named})'
        assert (refused.code, refused.body["details"]["causes"][0]["message"]) == (422, f"Forbidden: {why}")
        assert (await jane(api, "POST", path, policy(kind, None))).code == 201
        await let_jane(api, "read", "", "secrets", "get")
        changed = policy(kind, {"apiVersion": "v1", "kind": "Secret"})
        assert (await jane(api, "PATCH", f"{path}/p", changed)).code == 200

    check()


@pytest.mark.parametrize(
    ("kind", "policy_name", "reference", "why"),
    [
        ("validating", "p", {"name": "x"}, f'user {JANE} does not have "get" permission on the object referenced by'),
        ("mutating", "p", {"selector": {}}, f'user list does not have "{JANE}" permission on the object referenced by'),
        (
            "validating",
            "none",
            {"name": "x"},
            "unable to get policy none to determine minimum required permissions and",
        ),
        ("validating", "odd", {"name": "x"}, "unable to resolve paramKind &{a.com/v1 Thing} to determine minimum"),
    ],
)
def test_binding_a_policy_needs_read_access_to_its_parameters(
    kind: str, policy_name: str, reference: dict[str, Any], why: str
) -> None:
    @asking
    async def check(api: Api) -> None:
        await let_jane(api, "write", "admissionregistration.k8s.io", "*", "*")
        path = f"{POLICIES}/{kind}admissionpolicies"
        await api.post(path, policy(kind, {"apiVersion": "v1", "kind": "Secret"}))
        odd = policy(kind, {"apiVersion": "a.com/v1", "kind": "Thing"})
        await api.post(path, {**odd, "metadata": {"name": "odd"}})
        spec: dict[str, Any] = {"policyName": policy_name}
        spec |= {"validationActions": ["Deny"]} if kind == "validating" else {}
        bound = {
            "metadata": {"name": "b"},
            "spec": spec | {"paramRef": reference | {"parameterNotFoundAction": "Deny"}},
        }
        refused = await jane(api, "POST", f"{POLICIES}/{kind}admissionpolicybindings", bound)
        assert refused.code == 422
        assert refused.body["details"]["causes"][0]["message"].startswith(f"Forbidden: {why}")
        free = {"metadata": {"name": "b"}, "spec": spec}
        assert (await jane(api, "POST", f"{POLICIES}/{kind}admissionpolicybindings", free)).code == 201

    check()


@pytest.mark.parametrize("what", ["exec", "attach", "portforward"])
def test_a_connection_that_begins_with_a_get_takes_the_right_to_create(what: str) -> None:
    @asking
    async def check(api: Api) -> None:
        await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        assert (await api.post(PODS, POD)).code == 201
        await let_jane(api, "get", "", f"pods/{what}", "get")
        refused = await jane(api, "GET", f"{PODS}/p/{what}", None)
        assert (refused.code, refused.message) == (403, 'pods "p" is forbidden: ')
        assert (await jane(api, "POST", f"{PODS}/p/{what}", None)).code == 403
        await let_jane(api, "create", "", f"pods/{what}", "create")
        assert (await jane(api, "GET", f"{PODS}/p/{what}", None)).message == "pod p does not have a host assigned"

    check()


@pytest.mark.parametrize(("method", "media"), [("PUT", "application/json"), ("PATCH", "application/apply-patch+yaml")])
def test_an_update_that_creates_takes_the_right_to_create(method: str, media: str) -> None:
    @asking
    async def check(api: Api) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
        sent = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
        asked = f"{path}?fieldManager=m"
        await let_jane(api, "write", "coordination.k8s.io", "leases", "update patch", "a")
        refused = await api.ask(method, asked, sent, authorization="Bearer jane", content_type=media)
        why = (
            'User "jane" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default"'
        )
        assert (refused.code, refused.message) == (403, f'leases.coordination.k8s.io "a" is forbidden: {why}')
        assert (await api.get(path)).code == 404
        await let_jane(api, "create", "coordination.k8s.io", "leases", "create", "a")
        assert (await api.ask(method, asked, sent, authorization="Bearer jane", content_type=media)).code == 201

    check()


@asking
async def test_the_authorizer_in_a_policy_uses_roles(api: Api) -> None:
    await let_jane(api, "write", "", "configmaps", "create delete")
    held = "authorizer.group('').resource('configmaps').check('delete')"
    for name, expression in (
        ("a", f"{held}.allowed() && {held}.reason().startsWith('RBAC: allowed by ClusterRoleBinding')"),
        ("b", "!authorizer.group('').resource('secrets').check('get').allowed()"),
        (
            "c",
            "authorizer.path('/healthz').check('get').allowed() && !authorizer.path('/metrics').check('get').allowed()",
        ),
        ("d", "authorizer.requestResource.check('create').allowed()"),
        ("e", "!authorizer.serviceAccount('default', 'a').group('').resource('configmaps').check('get').allowed()"),
    ):
        maps = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        spec = {"matchConstraints": {"resourceRules": [maps]}, "validations": [{"expression": expression}]}
        await api.post(f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
        bound = {"policyName": name, "validationActions": ["Deny"]}
        await api.post(f"{POLICIES}/validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": bound})
    maps_path = "/api/v1/namespaces/default/configmaps"
    made = await jane(api, "POST", maps_path, {"metadata": {"name": "m"}})
    assert (made.code, made.message) == (201, "")
    refused = await api.post(maps_path, {"metadata": {"name": "n"}})
    assert "ValidatingAdmissionPolicy 'a' with binding 'a' denied request" in refused.message  # needs no role
