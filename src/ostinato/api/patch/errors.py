"""Why a patch was refused, and the HTTP status with which an API server answers.

The texts are those of kube-apiserver and kubectl, so that what people have learnt to search for stays true.
"""

# The classes say what is wrong in the words that one would use; "Error" behind them adds nothing.
# ruff: noqa: N818

from __future__ import annotations

from typing import ClassVar


class PatchError(ValueError):
    """A patch could not be applied, or could not be computed."""

    code: ClassVar[int] = 500


class MalformedPatch(PatchError):
    """The patch is not what its type asks for, whatever it is applied to."""

    code = 400


class PatchTooLarge(PatchError):
    """The patch has more operations than anybody needs."""

    code = 413


class InapplicablePatch(PatchError):
    """The patch is well formed, but does not fit this object."""

    code = 422


class TestFailed(InapplicablePatch):
    """A `test` operation found another value: the object is not in the state that the patch was made for."""

    __test__ = False  # no test case, whatever pytest makes of the name


class UnmergeablePatch(PatchError):
    """The lists of a strategic merge patch and of the object cannot be matched.

    kube-apiserver gives these no status of their own, and so answers 500.
    """


class PreconditionFailed(PatchError):
    """The computed patch would change what must stay: the kind, the version or the name."""

    code = 409


class PatchConflict(PatchError):
    """The same field was changed to different values by the configuration and by somebody else."""

    code = 409
