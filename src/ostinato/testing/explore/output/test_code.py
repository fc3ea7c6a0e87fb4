"""A test to paste: the shortest failing world as Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.scenario import Step


def code_of(name: str, steps: Sequence[Step], plan: Plan) -> str:
    """Return a test that runs one world again. `name`: of the operator in the test's module."""
    title = re.sub(r"\W+", "_", str(plan.faults[0]) if plan.faults else "the world").strip("_").lower()
    used = sorted({step.source().partition("(")[0] for step in steps})
    lines = [f"from ostinato.testing.explore import {', '.join(used)}", "", ""]
    lines.append(f"def test_{name}_survives_{title}(explore):")
    lines.append("    scenario = [")
    lines += [f"        {step.source()}," for step in steps]
    lines.append("    ]")
    lines.append(f"    explore({name}, scenario=scenario, replay={str(plan)!r})")
    return "\n".join(lines)
