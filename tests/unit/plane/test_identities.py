"""Identities of the parts of a plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.manager import Manager
from ostinato.plane import identities
from ostinato.plane.controllers import Options, add_controllers
from ostinato.server.core import Server
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.transport import InProcessTransport
from ostinato.world import Simulation


def test_every_controller_has_an_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    build = Manager.build

    def noted(manager: Manager, name: str) -> object:
        names.append(name)
        return build(manager, name)

    monkeypatch.setattr(Manager, "build", noted)
    paths = {name: tmp_path / name for name in ("ca_certificate", "ca_key", "volumes", "account_key")}
    paths["ca_certificate"].write_text("certificate")
    world = Simulation(seed=1)
    server = Server(world, MemoryLog())
    add_controllers(Manager(connect=lambda _: InProcessTransport(server), world=world), Options(**paths))
    assert "serviceaccount-token-controller" in names
    for name in names:
        assert identities.of_runnable(name) is not None, name
