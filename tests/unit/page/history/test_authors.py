"""Authors of changes, by managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.page.history.authors import Author, author_of

KUBECTL = {"manager": "kubectl", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:data": {"f:colour": {}}}}
SCALE = {**KUBECTL, "manager": "autoscaler"}
LATER = {**KUBECTL, "time": "2026-01-01T00:00:03Z"}
KUBELET = {
    "manager": "kubelet",
    "time": "2026-01-01T00:00:02Z",
    "subresource": "status",
    "fieldsV1": {"f:status": {"f:conditions": {}}},
}


def managed(*entries: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": [*entries]}}


@pytest.mark.parametrize(
    ("before", "after", "paths", "author"),
    [
        (None, managed(KUBECTL), (), Author("kubectl")),
        (managed(KUBECTL), managed(KUBECTL, KUBELET), (), Author("kubelet", "status")),
        (
            managed(KUBECTL, KUBELET),
            managed(LATER, KUBELET),
            (),
            Author("kubectl"),
        ),
        (managed(KUBECTL, KUBELET), managed(KUBECTL, KUBELET), ("data.colour",), Author("kubectl")),
        (managed(KUBELET), managed(KUBELET), ("status.conditions[Ready].status",), Author("kubelet", "status")),
        (managed(KUBECTL), managed(KUBECTL), ("spec.nodeName",), Author()),
        (managed(), managed(), ("spec.nodeName",), Author()),
        (managed(KUBECTL), managed({**KUBECTL, "fieldsV1": {}}, SCALE), ("data.colour",), Author("autoscaler")),
        ({}, {"metadata": {"managedFields": "?"}}, (), Author()),
    ],
)
def test_the_author_is_whose_entry_changed_or_who_owns_the_field(
    before: Any, after: Any, paths: tuple[str, ...], author: Author
) -> None:
    assert author_of(before, after, paths) == author
