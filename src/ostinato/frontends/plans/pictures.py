"""Trees of plans, phases and steps as text, as `kubectl kudo` draws them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ostinato.frontends.plans.api import Instance, InstanceStatus, OperatorVersionSpec, PhaseStatus
from ostinato.frontends.plans.engine import states


class Node(NamedTuple):
    text: str
    children: Sequence[Node] = ()


def tree(*roots: Node, title: str = ".") -> str:
    """Draw trees below a title."""
    return "\n".join([title, *_lines(roots, "")]) + "\n"


def _lines(nodes: Sequence[Node], indent: str) -> Iterator[str]:
    for number, node in enumerate(nodes, 1):
        is_last = number == len(nodes)
        yield f"{indent}{'└──' if is_last else '├──'} {node.text}"
        yield from _lines(node.children, indent + ("    " if is_last else "│   "))


def status_tree(instance: Instance, version: OperatorVersionSpec) -> str | None:
    """Draw the plans of an instance; None if no plan has run."""
    status = instance.status or InstanceStatus()
    uid = "" if status.execution is None else status.execution.last_uid
    last = states.last_run(status.plan_status, uid)
    if last is None:
        return None
    plans = []
    for name, plan in sorted((version.plans or {}).items()):
        title = f"Plan {name} ({plan.strategy} strategy)"
        strategies = {phase.name: phase.strategy for phase in plan.phases or ()}
        if name == last.name:
            phases = [_phase(each, strategies.get(each.name, "")) for each in last.phases]
            when = last.last_updated_timestamp
            updated = "" if when is None else f", last updated {str(when).replace('T', ' ').removesuffix('Z')}"
            plans.append(Node(f"{title} [{last.status}]{_said(last.message)}{updated}", phases))
        else:
            inactive = states.prepare({name: plan}, {})[name]
            phases = [_phase(each, strategies[each.name], "NOT ACTIVE") for each in inactive.phases]
            plans.append(Node(f"{title} [NOT ACTIVE]", phases))
    reference = instance.spec.operator_version.name
    root = f'{instance.metadata.name} (Operator-Version: "{reference}" Active-Plan: "{last.name}")'
    return tree(Node(root, plans))


def _phase(phase: PhaseStatus, strategy: str, state: str = "") -> Node:
    steps = [Node(f"Step {each.name} [{state or each.status}]{_said(each.message)}") for each in phase.steps]
    return Node(f"Phase {phase.name} ({strategy} strategy) [{state or phase.status}]{_said(phase.message)}", steps)


def history_tree(instance: Instance) -> str:
    """Draw when each plan has run last."""
    nodes = []
    for name, plan in sorted((instance.status or InstanceStatus()).plan_status.items()):
        when = plan.last_updated_timestamp
        if when is not None:
            said = f"last finished run at {str(when).removesuffix('Z')} ({plan.status})"
        else:
            said = "is running" if plan.status in states.RUNNING else plan.status or "never run"
        nodes.append(Node(f"{name} ({said})"))
    return tree(*nodes)


def _said(message: str) -> str:
    return f" ({message})" if message else ""
