"""AlwaysDeny refuses every write. A kube-apiserver does not even start with it: its own writes are refused."""

from __future__ import annotations

from tests.stage.api import Api
from tests.stage.server import started_server

from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.request import User
from ostinato.world import Simulation


def test_every_write_is_denied_and_reads_are_not() -> None:
    simulation = Simulation(seed=1)

    async def main() -> None:
        async with started_server(simulation, admission=AdmissionSettings(enabled=("AlwaysDeny",))) as server:
            server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
            api = Api(server)
            answers = [
                await api.post("/api/v1/namespaces", {"metadata": {"name": "a"}}),
                await api.merge("/api/v1/namespaces/default", {"metadata": {"labels": {"a": "b"}}}),
                await api.delete("/api/v1/namespaces/default/services/kubernetes"),
            ]
            assert [answer.code for answer in answers] == [403] * 3
            why = "admission control is denying all modifications"
            assert answers[0].message == f'namespaces "a" is forbidden: {why}'
            assert (await api.get("/api/v1/namespaces/default")).code == 200

    simulation.run(main())
