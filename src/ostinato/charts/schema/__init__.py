"""values.schema.json: JSON Schema, drafts 4 to 2020-12, with the messages that Helm prints."""

from ostinato.charts.schema.values import check_schemas

__all__ = ["check_schemas"]
