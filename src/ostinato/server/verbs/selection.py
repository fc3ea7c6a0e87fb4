"""Selection: the objects that a list or a watch covers."""

from __future__ import annotations

from ostinato.api.errors import BadRequest
from ostinato.api.selectors import fields, labels
from ostinato.server.request.context import Context
from ostinato.server.request.options import ListOptions
from ostinato.server.resources.resource import Resource
from ostinato.server.store.records import Entry


class Selection:
    """The objects of one scope that match both selectors."""

    def __init__(self, context: Context, options: ListOptions) -> None:
        self.prefix = context.prefix
        self.labels = options.label_selector
        self.fields = _of_name(_known(context.resource, options.field_selector), context.route.name)
        self._all_labels = self.labels == labels.everything()
        self._all_fields = self.fields == fields.everything()
        self._namespaced = context.resource.namespaced
        self.everything = self._all_labels and self._all_fields

    @property
    def scope(self) -> str:
        """The common key prefix of all objects that can match; the whole key if only one can."""
        prefix = self.prefix
        if self._namespaced and not prefix:
            namespace = self.fields.requires_exact_match("metadata.namespace")
            if not namespace:
                return ""
            prefix = f"{namespace}/"
        return prefix + (self.fields.requires_exact_match("metadata.name") or "")

    def selects(self, entry: Entry) -> bool:
        """Whether an object of the scope matches."""
        if not self._all_labels and not self.labels.matches(entry.labels):
            return False
        return self._all_fields or self._matches_fields(entry)

    def _matches_fields(self, entry: Entry) -> bool:
        """Match fields without building a map of all; every watcher calls this for every write."""
        for term in self.fields.terms:
            field = term.field
            if field == "metadata.name":
                found = entry.key.rpartition("/")[2]
            elif field == "metadata.namespace":
                found = entry.key.rpartition("/")[0]
            else:
                found = entry.fields.get(field, "")
            if (found == term.value) is term.negated:
                return False
        return not self.fields.selects_nothing


def _of_name(selector: fields.Selector, name: str) -> fields.Selector:
    """The field selector, narrowed to the object that the path names: deprecated watch paths name one."""
    if not name:
        return selector
    if selector.empty:
        return fields.from_set({"metadata.name": name})
    if selector.requires_exact_match("metadata.name") != name:
        raise BadRequest.of("fieldSelector metadata.name doesn't match requested name")
    return selector


def _known(resource: Resource, selector: fields.Selector) -> fields.Selector:
    """The selector with the field names of entries; BadRequest for fields that are not selectable."""
    if selector.empty:
        return selector
    aliases = resource.strategy.field_aliases
    try:
        if not (resource.selectable or aliases or resource.custom):
            return selector.transform(fields.metadata_only)
        known = ["metadata.name", *resource.selectable]
        if resource.namespaced:
            known.append("metadata.namespace")
        supported = fields.only(known)
        return selector.transform(
            lambda field, value: (aliases[field], value) if field in aliases else supported(field, value)
        )
    except fields.FieldSelectorError as error:
        raise BadRequest.of(str(error)) from error
