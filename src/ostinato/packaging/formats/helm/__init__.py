"""A Helm chart: templates with a switch for every feature, values, and their schema.

- CustomResourceDefinitions are templates, so that an upgrade changes them, and are kept when the chart is uninstalled.
- Literal text cannot be mistaken for a template: `{{` in it is escaped.
"""

from ostinato.packaging.formats.helm.chart import helm_chart

__all__ = ["helm_chart"]
