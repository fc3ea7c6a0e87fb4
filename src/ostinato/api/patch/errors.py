"""Errors of patches, with the HTTP status of the response.

The messages are those of kube-apiserver and kubectl.
"""

# The classes are named after the conditions, without the suffix "Error".
# ruff: noqa: N818

from __future__ import annotations

from typing import ClassVar


class PatchError(ValueError):
    """A patch cannot be applied or computed."""

    code: ClassVar[int] = 500


class MalformedPatch(PatchError):
    """The patch is invalid for its type, regardless of the object."""

    code = 400


class PatchTooLarge(PatchError):
    """The patch has too many operations."""

    code = 413


class InapplicablePatch(PatchError):
    """The patch is well-formed, but cannot be applied to the object."""

    code = 422


class TestFailed(InapplicablePatch):
    """A `test` operation failed: the object has another value."""

    __test__ = False  # not a test case for pytest


class UnmergeablePatch(PatchError):
    """The lists of a strategic merge patch and of the object cannot be merged. kube-apiserver responds with 500."""


class PreconditionFailed(PatchError):
    """The computed patch would change kind, apiVersion or name."""

    code = 409


class PatchConflict(PatchError):
    """A field was changed to different values in the configuration and in the live object."""

    code = 409
