"""Request: which object a reconcile is about.

It is a namespace and a name, and nothing else: what happened to the object is not said, since a reconcile looks at what
is the case now. A controller without a primary kind may use any hashable value in its place.
"""

from __future__ import annotations

from ostinato.api.gvk import NamespacedName

Request = NamespacedName
