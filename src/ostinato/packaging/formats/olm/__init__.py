"""A bundle for the Operator Lifecycle Manager, in the format `registry+v1`, and a checker of its rules."""

from ostinato.packaging.formats.olm.bundle import olm_bundle
from ostinato.packaging.formats.olm.check import check_bundle

__all__ = ["check_bundle", "olm_bundle"]
