"""A program that loads files decides about the managers in them, and runs them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato.cache import InformerSettings
from ostinato.client import Config
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager import CacheOptions, LeaderElection, Manager, run
from ostinato.manager.hosting import Choices, Host, current_host, hosting


def no_transport(purpose: Any) -> Any:
    raise AssertionError


def test_a_manager_that_is_run_in_a_loaded_file_is_left_to_the_host() -> None:
    with hosting(Host()) as host:
        first, second, third = Manager(), Manager(), Manager()
        first.run()
        run(second, third)
    assert host.managers == [first, second, third]
    assert current_host() is None


def test_a_program_that_calls_serve_itself_is_rejected() -> None:
    with hosting(Host()):
        manager = Manager(connect=no_transport)
        with pytest.raises(RuntimeError, match=r"call run\(\) instead"):
            asyncio.run(manager.serve())


def test_the_host_overrides_the_file_and_the_file_the_defaults() -> None:
    theirs, ours = Config(server="https://theirs"), Config(server="https://ours", namespace="ns")
    file = Choices(config=theirs, leader_election="a", health=":1", metrics=":2")
    assert Host().decide(file) == file
    host = Host(choices=Choices(config=ours, leader_election="b", health=":3"))
    assert host.decide(file) == Choices(config=ours, leader_election="b", health=":3", metrics=":2")


def test_a_host_that_names_the_server_does_so_alone() -> None:
    file = Choices(config=Config(server="https://theirs"), connect=no_transport)
    ours = Config(server="https://ours")
    decided = Host(choices=Choices(config=ours)).decide(file)
    assert (decided.config, decided.connect) == (ours, None)


def test_a_name_for_the_lease_leaves_its_times_alone() -> None:
    file = Choices(leader_election=LeaderElection(name="a", lease_duration=60))
    decided = Host(choices=Choices(leader_election="b")).decide(file)
    assert decided.leader_election == LeaderElection(name="b", lease_duration=60)
    with hosting(Host(choices=Choices(leader_election="b"))):
        election = Manager().leader_election
    assert election is not None
    assert election.name == "b"


def test_a_namespace_narrows_all_that_a_file_does_not_narrow_itself() -> None:
    caches = CacheOptions(
        settings={ConfigMap: InformerSettings(labels={"a": "b"}), Secret: InformerSettings(namespaces=("x", "y"))}
    )
    decided = Host(namespace="ns").decide(Choices(caches=caches)).caches
    assert decided is not None
    assert decided.defaults.namespaces == ("ns",)
    assert decided.settings[ConfigMap] == InformerSettings(namespaces=("ns",), labels={"a": "b"})
    assert decided.settings[Secret].namespaces == ("x", "y")


def test_a_manager_lists_its_runnables() -> None:
    class Part:
        name = "part"

        async def run(self, dependencies: Any) -> None: ...

    part = Part()
    assert Manager().add(part).runnables == (part,)
