"""Tokens that were changed get the answers that kube-apiserver was recorded to give, but for listed differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.stage.api import Api
from tests.stage.server import started_server
from tests.unit.server.access.authentication.mutations import Minter, every

from ostinato.server.access.authentication.settings import AuthenticationSettings, ServiceAccountSettings
from ostinato.server.request import User
from ostinato.world import Simulation

RECORDED: dict[str, str] = json.loads((Path(__file__).parents[1] / "data/token_mutations.json").read_text())

STRICTER = {
    "surplus bits of the signature": "a token has one spelling: Go ignores the bits that no byte takes",
    "line break inside": "Go ignores line breaks in base64",
    "header not UTF-8": "RFC 8259: JSON is UTF-8; Go replaces what is not",
    "header with crit empty": "RFC 7515, 4.1.11: the list must not be empty",
    "header with crit b64 true": "no extension is implemented",
    "space before": "kube-apiserver answers that the token is system:anonymous's",
    "space at the end": "kube-apiserver reviews the part before the space",
}
WORDED_OTHERWISE = {  # refused by both
    "duplicate iss",
    "duplicate sub",
    "duplicate nested key",
    "iss in capitals",
    "jti a number",
    "kubernetes.io a string",
    "no kubernetes.io",
    "no namespace",
    "header null",
    "warnafter a string",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    key = rsa.generate_private_key(65537, 2048)
    path = tmp_path_factory.mktemp("keys") / "sa.key"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    simulation = Simulation(seed=1)
    told = {}

    async def main() -> None:
        settings = AuthenticationSettings(accounts=ServiceAccountSettings(signing_key=path))
        async with started_server(simulation, authentication=settings) as server:
            server.authenticator.add("admin", User("admin", groups=("system:masters",)))
            api = Api(server)
            made = await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
            uid = made.body["metadata"]["uid"]
            for name, token in every(Minter(key, int(simulation.clock.wall()), uid)):
                review = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
                status = review.body["status"]
                told[name] = "" if status.get("authenticated") else status["error"].replace(uid, "UID")

    simulation.run(main())
    return told


def test_every_recorded_mutation_is_tried(answers: dict[str, str]) -> None:
    assert answers.keys() == RECORDED.keys()
    assert (STRICTER.keys() | WORDED_OTHERWISE) <= RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_a_changed_token_is_answered_as_kube_apiserver_does(answers: dict[str, str], name: str) -> None:
    if name in STRICTER:
        assert (answers[name], RECORDED[name]) == ("invalid bearer token", "") or "cryptographic" in answers[name]
    elif name in WORDED_OTHERWISE:
        assert answers[name]
        assert RECORDED[name]
        assert answers[name] != RECORDED[name]
    else:
        assert answers[name] == RECORDED[name]
