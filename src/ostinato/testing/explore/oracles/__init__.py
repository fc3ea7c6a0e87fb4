"""Oracles: what must be true of every world, whatever faults it had. Convergence is judged by the run itself."""

from ostinato.testing.explore.oracles.checks import judge

__all__ = ["judge"]
