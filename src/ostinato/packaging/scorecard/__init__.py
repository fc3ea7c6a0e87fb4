"""The scorecard: checks of a package, those of operator-sdk's scorecard first, and what a cluster says about it.

    results = [*static_results(package), *await cluster_results(package, runnables)]
    sys.stdout.write(text_report(results))

| suite | checks |
|---|---|
| `basic` | samples exist and have a spec; definitions have a status |
| `olm` | the bundle and its presentation |
| `deployment` | probes, resources, image, permissions |
| `cluster` | an API server in this process accepts the objects, and the controllers reconcile the samples |
"""

from ostinato.packaging.scorecard.cluster import cluster_results
from ostinato.packaging.scorecard.report import json_report, text_report
from ostinato.packaging.scorecard.result import Result
from ostinato.packaging.scorecard.static import SUITES, static_results

__all__ = ["SUITES", "Result", "cluster_results", "json_report", "static_results", "text_report"]
