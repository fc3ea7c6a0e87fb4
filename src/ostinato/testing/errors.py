"""Errors of tests."""

from __future__ import annotations


class UnexpectedErrors(AssertionError):  # noqa: N818
    """Errors in the background that the test did not read: failed reconciles, missing permissions, unused faults."""


class NotOnThisCluster(RuntimeError):  # noqa: N818
    """The test uses something that exists in this process only, such as faults, on a real cluster."""
