"""Writer: the signatures of `patch` and `delete`, shared by the client and the cached client.

Both take an object, or a kind and a key; subclasses implement each form.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar, Unpack, overload

from ostinato.api.accessors import AnyObject
from ostinato.client.arguments import check_object, summarize
from ostinato.client.discovery.paths import Key
from ostinato.client.options import DeletionOptions, WriteOptions
from ostinato.client.patching import Patch
from ostinato.client.views import Kind

T = TypeVar("T")
A = TypeVar("A", bound=AnyObject)


class Writer:
    @overload
    async def patch(
        self, target: A, /, *, original: A | None = None, optimistic_lock: bool = False, **options: Unpack[WriteOptions]
    ) -> A: ...
    @overload
    async def patch(
        self,
        target: Kind[T],
        name: Key,
        patch: Patch,
        /,
        *,
        namespace: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T: ...
    async def patch(
        self,
        target: Any,
        name: Key = "",
        patch: Patch | None = None,
        /,
        *,
        namespace: str | None = None,
        original: Any = None,
        optimistic_lock: bool = False,
        **options: Unpack[WriteOptions],
    ) -> Any:
        """Patch an object: with a patch, or, given the object itself, with its changes since it was read.

        - `original`: the object as it was read. Required for dicts only.
        - `optimistic_lock`: raise Conflict if the object was written since. Defaults to False.
        - Without changes no request is sent, and the same object is returned.
        """
        if patch is None:
            check_object(target, "patch")
            return await self._patch_changes(target, original, options, optimistic_lock=optimistic_lock)
        if not isinstance(patch, Patch):
            raise TypeError(
                f"patch() got {summarize(patch)}, which is not a patch; pass its type, e.g. MergePatch({{...}})"
            )
        return await self._patch_key(target, name, namespace, patch, options)

    @overload
    async def delete(
        self, target: AnyObject, /, *, missing_ok: bool = False, **options: Unpack[DeletionOptions]
    ) -> None: ...
    @overload
    async def delete(
        self,
        target: Kind[Any],
        name: Key,
        /,
        *,
        namespace: str | None = None,
        missing_ok: bool = False,
        **options: Unpack[DeletionOptions],
    ) -> None: ...
    async def delete(
        self,
        target: Any,
        name: Key | None = None,
        /,
        *,
        namespace: str | None = None,
        missing_ok: bool = False,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """Delete an object; one with finalizers is marked for deletion.

        - `missing_ok`: do not raise NotFound if it does not exist. Defaults to False.
        - An object that was read is deleted only if its uid is the same, not if it was recreated meanwhile.
        """
        if name is None:
            check_object(target, "delete")
            await self._delete_object(target, options, missing_ok=missing_ok)
        else:
            await self._delete_key(target, name, namespace, options, missing_ok=missing_ok)

    @abstractmethod
    async def _patch_changes(self, target: A, original: A | None, options: WriteOptions, *, optimistic_lock: bool) -> A:
        """Patch an object with its changes since it was read."""

    @abstractmethod
    async def _patch_key(
        self, kind: Kind[T], name: Key, namespace: str | None, patch: Patch, options: WriteOptions
    ) -> T:
        """Patch the object with a key."""

    @abstractmethod
    async def _delete_object(self, target: AnyObject, options: DeletionOptions, *, missing_ok: bool) -> object:
        """Delete an object that was read or built."""

    @abstractmethod
    async def _delete_key(
        self, kind: Kind[Any], name: Key, namespace: str | None, options: DeletionOptions, *, missing_ok: bool
    ) -> object:
        """Delete the object with a key."""
