"""Metrics of hooks: operations, groups, and what is refused."""

from __future__ import annotations

import pytest

from ostinato.frontends.hooks.metrics import HookMetrics, MetricError, parse_metrics
from ostinato.metrics import Registry


class Page:
    def __init__(self) -> None:
        self._metrics = HookMetrics()
        self._registry = Registry()
        self._registry.add(self._metrics.families)

    def run(self, text: str) -> list[str]:
        """Apply the operations of one run; return all series."""
        self._metrics.apply(parse_metrics(text.encode()), "a.sh")
        return [line for line in self._registry.text().splitlines() if not line.startswith("#")]


def test_a_group_is_replaced_by_each_run_that_has_it() -> None:
    page = Page()
    both = '{"group":"g","name":"a","set":1,"labels":{"x":"1"}}\n{"group":"g","name":"c","add":5}'
    both += '{"group":"h","name":"b","set":2}'
    assert page.run(both) == ['a{hook="a.sh",x="1"} 1', 'b{hook="a.sh"} 2', 'c{hook="a.sh"} 5']
    assert page.run('{"group":"g","name":"c","action":"add","value":5}') == ['b{hook="a.sh"} 2', 'c{hook="a.sh"} 5']
    assert page.run("") == ['b{hook="a.sh"} 2', 'c{hook="a.sh"} 5']
    assert page.run('{"group":"h","action":"expire"}') == ['c{hook="a.sh"} 5']


def test_series_without_a_group_stay_and_count_on() -> None:
    page = Page()
    page.run('{"name":"n","add":2}{"name":"g","set":7}')
    assert page.run('{"name":"n","add":3}') == ['g{hook="a.sh"} 7', 'n{hook="a.sh"} 5']


def test_histograms_have_the_buckets_of_the_first_observation() -> None:
    page = Page()
    assert page.run('{"name":"h","action":"observe","value":3,"buckets":[1,5]}') == [
        'h_bucket{hook="a.sh",le="1"} 0',
        'h_bucket{hook="a.sh",le="5"} 1',
        'h_bucket{hook="a.sh",le="+Inf"} 1',
        'h_sum{hook="a.sh"} 3',
        'h_count{hook="a.sh"} 1',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"name":"a"}', "metric operation 1: action: '' is none of add, set, observe, expire"),
        ('{"name":"a","set":1}{"name":"b","action":"add"}', "metric operation 2: value: required"),
        ('{"name":"a b","set":1}', "name: 'a b' is not a metric name"),
        ('{"name":"a","set":1,"labels":{"x-y":"z"}}', "labels: 'x-y' is not a label name"),
        ('{"action":"expire"}', "group: required for expire"),
        ('{"name":"a","set":"one"}', "metric operation 1: Expected `float"),
        ("garbage", "metric operation 1: "),
    ],
)
def test_a_wrong_operation_is_named(text: str, problem: str) -> None:
    with pytest.raises(MetricError, match=problem):
        parse_metrics(text.encode())


def test_a_metric_cannot_change_its_type_and_nothing_is_applied_then() -> None:
    page = Page()
    page.run('{"name":"a","set":1}')
    with pytest.raises(MetricError, match="metric a is a gauge; add does not fit"):
        page.run('{"name":"b","set":1}{"name":"a","add":1}')
    assert page.run("") == ['a{hook="a.sh"} 1']
