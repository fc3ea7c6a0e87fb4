"""Request: the key of a reconcile, namespace and name of the object.

It carries no event: a reconcile compares desired and actual state, whatever changed. The sources of a controller
without a kind may enqueue any hashable value instead.
"""

from __future__ import annotations

from ostinato.api.gvk import NamespacedName

Request = NamespacedName
