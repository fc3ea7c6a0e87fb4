"""Thirty tests of an operator: pytest with the fixtures of `ostinato.testing`, and the same cases with Go's envtest."""

from bench.operator_suite.run import main

__all__ = ["main"]
