from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod

from ostinato.plane.scheduler import WeightedPlugin, filter_by
from ostinato.plane.scheduler.framework.runtime import FitError, _feasible_nodes_to_find, _largest


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [
        (1, 0, 1),
        (99, 0, 99),
        (100, 0, 100),
        (500, 0, 230),
        (1000, 0, 420),
        (5000, 0, 500),
        (6000, 0, 300),
        (10000, 0, 500),
        (1000, 10, 100),
        (1000, 100, 1000),
    ],
)
def test_larger_clusters_check_a_smaller_percentage_of_nodes(nodes: int, percentage: int, wanted: int) -> None:
    assert _feasible_nodes_to_find(nodes, percentage) == wanted


def test_searches_start_where_the_last_one_ended() -> None:
    fixture = SchedulerFixture(*[node(f"n{number}", labels={"number": str(number)}) for number in range(300)])
    chosen = {fixture.place(pod(f"p{number}", cpu="100m")) for number in range(300)}
    assert len(chosen) > 280  # more than one search checks


def test_without_nodes_there_is_no_result() -> None:
    assert SchedulerFixture().try_(pod()) is None


def test_function_filters_get_pod_and_node_and_their_reason_is_reported() -> None:
    fridays = filter_by("fridays", lambda info, where: "not on fridays" if where.name != info.name else None)
    fixture = SchedulerFixture(node("a"), node("b"), plugins=(WeightedPlugin(fridays),))
    assert fixture.where(pod("b")) == "b"
    assert fixture.message(pod("c")) == (
        "0/2 nodes are available: 2 not on fridays. no new claims to deallocate, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


def test_the_rejecting_plugins_are_reported() -> None:
    fixture = SchedulerFixture(node("a", unschedulable=True), node("b", cpu="1"))
    found = fixture.try_(pod(cpu="2"))
    assert isinstance(found, FitError)
    assert found.diagnosis.plugins == {"NodeUnschedulable", "NodeResourcesFit"}


@pytest.mark.parametrize(
    ("one", "other", "nodes"),
    [
        ({"nodeSelector": {"zone": "x"}}, {"nodeSelector": {"zone": "y"}}, ("a", "b")),
        ({"cpu": "1"}, {"cpu": "4"}, ("a", "b")),
        ({}, {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"zone": "y"}}, ("a", "b")),
        ({"cpu": "1"}, {"cpu": "1", "overhead": {"cpu": "3"}}, ("a", "b")),
    ],
)
def test_different_shapes_do_not_share_results(one: Json, other: Json, nodes: tuple[str, str]) -> None:
    taint = {"key": "soft", "effect": "PreferNoSchedule"}
    fixture = SchedulerFixture(
        node("a", cpu="2", labels={"zone": "x"}), node("b", cpu="8", labels={"zone": "y"}, taints=[taint])
    )
    for _ in range(2):
        assert (fixture.where(pod(**one)), fixture.where(pod(**other))) == nodes


Step = tuple[str, int, int]
_steps = st.lists(
    st.tuples(
        st.sampled_from(["place", "remove", "cordon", "free", "grow", "drop"]), st.integers(0, 5), st.integers(0, 2)
    ),
    max_size=25,
)
_SHAPES = (
    {"cpu": "1"},
    {"cpu": "500m", "labels": {"app": "web"}},
    {
        "labels": {"app": "db"},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "db"}},
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        },
    },
)


@settings(max_examples=60, deadline=None)
@given(_steps)
def test_cached_results_equal_fresh_results(steps: list[Step]) -> None:
    fixture = SchedulerFixture()
    made = {f"n{number}": node(f"n{number}", cpu="3", labels={"zone": f"z{number % 2}"}) for number in range(6)}
    fixture.put_nodes(*made.values())
    placed: list[str] = []
    for number, (action, which, shape) in enumerate(steps):
        name = f"n{which}"
        if action == "place":
            info = fixture.framework.schedule(fixture.read(pod(f"p{number}", **_SHAPES[shape])))
            if info is not None and not isinstance(info, FitError):
                fixture.snapshot.put_pod(info.cycle.pod.on(info.node.name))
                placed.append(info.cycle.pod.uid)
        elif action == "remove" and placed:
            fixture.snapshot.remove_pod(placed.pop(which % len(placed)))
        elif action == "drop":
            fixture.snapshot.remove_node(name)
        elif action in ("cordon", "free", "grow"):
            made[name] = node(
                name,
                cpu="5" if action == "grow" else "3",
                labels={"zone": f"z{which % 2}"},
                unschedulable=action == "cordon",
            )
            fixture.put_nodes(made[name])
    for shape in _SHAPES:
        given_pod = pod("probe", **shape)
        found = fixture.try_(given_pod)
        fits = fixture.fits(given_pod)
        if found is None:
            assert not fixture.snapshot.nodes
        elif isinstance(found, FitError):
            assert fits == set()
            told = {name: list(status.reasons) for name, status in found.diagnosis.statuses.items()}
            assert told == fixture.reasons(given_pod)
        else:
            assert found.node.name in fits
        fresh = SchedulerFixture(*[made[each.name] for each in fixture.snapshot.nodes])
        for each in fixture.snapshot.nodes:
            for info in each.pods.values():
                fresh.snapshot.put_pod(info)
        assert fresh.reasons(given_pod) == fixture.reasons(given_pod)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(1, 9))
def test_the_largest_totals_are_those_that_a_sort_finds_first(totals: list[int], count: int) -> None:
    ties = [at for at, total in enumerate(totals) if total == max(totals)]
    if len(ties) < count:
        wanted = sorted(range(len(totals)), key=lambda at: -totals[at])[:count]
        assert _largest(totals, ties, count) == wanted
