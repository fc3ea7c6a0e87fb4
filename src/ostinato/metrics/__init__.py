"""Metrics: the data model, histograms and the Prometheus text format, for every package.

- A component keeps plain numbers and `Histogram`s and exposes them by a function that returns `Family` values. Nothing
  is registered globally, and nothing is computed before a scrape.
- `LabelledMetrics` counts and observes by metric name and label values, for components that report by a protocol.
- `Registry` merges the families of several components; `exposition` prints them.
"""

from ostinato.metrics.exposition import CONTENT_TYPE, text
from ostinato.metrics.families import Families, Family, Sample, counter, gauge
from ostinato.metrics.histogram import EXPONENTIAL_BUCKETS, Histogram
from ostinato.metrics.labelled import Description, LabelledMetrics
from ostinato.metrics.process import process_families
from ostinato.metrics.registry import Registry

__all__ = [
    "CONTENT_TYPE",
    "EXPONENTIAL_BUCKETS",
    "Description",
    "Families",
    "Family",
    "Histogram",
    "LabelledMetrics",
    "Registry",
    "Sample",
    "counter",
    "gauge",
    "process_families",
    "text",
]
