"""Helm charts without Helm: loaded, checked and rendered as `helm template` does, byte for byte.

```python
from ostinato.charts import Capabilities, Engine, Release, ValueOptions, load_chart, render_chart
from ostinato.world import World

chart = load_chart("charts/shop")
values = ValueOptions(files=["values/production.yaml"], set=["replicas=3"]).values()
rendering = render_chart(chart, values, Engine(World.real()), Release("shop", "web"), Capabilities())
for manifest in rendering.manifests:  # in the order of installation
    print(manifest.kind, manifest.name)
```

- `load_chart`: a directory or a `.tgz`. `Chart.values` are its defaults.
- `Engine(world, lookup=...)`: renders many charts; `lookup` reads objects of a cluster for templates.
- `Rendering`: `manifests`, `hooks`, `crds`, `notes`; `text()` is what `helm template` prints.
- Errors are `ChartError`, with the texts of Helm.
"""

from ostinato.charts.capabilities import Capabilities
from ostinato.charts.chart import Chart, ChartError
from ostinato.charts.engine import Engine, Lookup
from ostinato.charts.load import load_chart, load_files
from ostinato.charts.manifests import INSTALL_ORDER, UNINSTALL_ORDER, Hook, Manifest
from ostinato.charts.objects import Release
from ostinato.charts.rendering import Rendering, render_chart
from ostinato.charts.values import ValueOptions

__all__ = [
    "INSTALL_ORDER",
    "UNINSTALL_ORDER",
    "Capabilities",
    "Chart",
    "ChartError",
    "Engine",
    "Hook",
    "Lookup",
    "Manifest",
    "Release",
    "Rendering",
    "ValueOptions",
    "load_chart",
    "load_files",
    "render_chart",
]
