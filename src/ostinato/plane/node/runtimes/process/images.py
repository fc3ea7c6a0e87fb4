"""Images of a node's containers and volumes: those that were loaded, where containers can be isolated."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ostinato.kinds.core_v1 import Container
from ostinato.plane.node.images.image import Image, ImageError
from ostinato.plane.node.images.store import ImageStore
from ostinato.plane.node.runtimes import Launch, Mount, StartError


class NodeImages:
    def __init__(self, directory: Path | None, unsupported_reason: str) -> None:
        """`directory`: of the image store. `unsupported_reason`: why images cannot be used; empty if they can."""
        self._store = None if directory is None else ImageStore(directory)
        self._unsupported_reason = unsupported_reason

    def of(self, container: Container) -> Image | None:
        """Return the image of a container; None if it was not loaded, or cannot be used."""
        if self._store is None or self._unsupported_reason or not container.image:
            return None
        try:
            return self._store.find(container.image)
        except ImageError as error:
            raise StartError("CreateContainerError", str(error)) from None
        except ValueError as error:
            message = f'couldn\'t parse image name "{container.image}": {error}'
            if not container.command:
                raise StartError("InvalidImageName", message) from None
            return None

    def with_volumes(self, launch: Launch) -> Launch:
        """Resolve the mounts of images to their root file systems; `StartError` if an image was not loaded."""
        if not any(each.image for each in launch.mounts):
            return launch
        mounts = [self._resolved(each) if each.image else each for each in launch.mounts]
        return msgspec.structs.replace(launch, mounts=mounts)

    def _resolved(self, mount: Mount) -> Mount:
        if self._unsupported_reason:
            message = f"mountPath {mount.target}: images cannot be mounted: {self._unsupported_reason}"
            raise StartError("CreateContainerError", message)
        try:
            image = None if self._store is None else self._store.find(mount.image)
        except ValueError as error:
            raise StartError("InvalidImageName", f'couldn\'t parse image name "{mount.image}": {error}') from None
        if image is None:
            message = (
                f"mountPath {mount.target}: the image {mount.image} is not on this node; "
                "load it with `ostinato images load`"
            )
            raise StartError("ErrImageNeverPull", message)
        return Mount(image.root, mount.target, read_only=True, sub_path=mount.sub_path)
