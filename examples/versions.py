"""Two versions of one kind: a Monitor is stored as v1, and clients may read and write v1beta1.

    $ ostinato run --embedded examples/versions.py
    embedded cluster ready at https://127.0.0.1:43571; kubectl --kubeconfig /tmp/ostinato-3k2v/admin.kubeconfig

In another shell, with that file as `KUBECONFIG`:

    $ kubectl apply -f examples/versions.yaml
    $ kubectl get monitors.v1beta1.example.dev shop -o jsonpath='{.spec.address}'
    $ kubectl get monitors.v1.example.dev shop -o jsonpath='{.spec.host} {.spec.port}'

- v1beta1 has an `address` such as "shop.example.org:443"; v1 has `host`, `port`, and the new field `path`.
- v1beta1 cannot express a path. A conversion must not lose it: it travels in an annotation.
- The controller knows v1 only.

In a cluster, `ostinato manifests` writes the definition with its conversion, and `Webhooks` serves it behind a Service.
"""

from typing import Annotated

from ostinato import Context, CustomResource, Ge, Le, Manager, Pattern, Struct, controller
from ostinato.api.markers import Stored, marked
from ostinato.webhook import ServiceEndpoint, Webhooks, converter

PATH = "example.dev/path"


class MonitorV1beta1Spec(Struct):
    address: Annotated[str, Pattern(r"^[^:/]+:[0-9]+$")]


class MonitorStatus(Struct):
    url: str = ""


class MonitorV1beta1(CustomResource, group="example.dev", version="v1beta1", kind="Monitor"):
    spec: MonitorV1beta1Spec
    status: MonitorStatus | None = None


class MonitorSpec(Struct):
    host: str
    port: Annotated[int, Ge(1), Le(65535)] = 443
    path: str = "/"


@marked(Stored())
class Monitor(CustomResource, group="example.dev", version="v1"):
    spec: MonitorSpec
    status: MonitorStatus | None = None


@converter
def upgrade(old: MonitorV1beta1) -> Monitor:
    host, _, port = old.spec.address.rpartition(":")
    path = old.metadata.annotations.pop(PATH, "/")
    return Monitor(metadata=old.metadata, spec=MonitorSpec(host=host, port=int(port), path=path), status=old.status)


@converter
def downgrade(new: Monitor) -> MonitorV1beta1:
    if new.spec.path != "/":
        new.metadata.annotations[PATH] = new.spec.path
    spec = MonitorV1beta1Spec(address=f"{new.spec.host}:{new.spec.port}")
    return MonitorV1beta1(metadata=new.metadata, spec=spec, status=new.status)


@controller(Monitor)
async def monitors(monitor: Monitor, ctx: Context) -> None:
    await ctx.status(url=f"https://{monitor.spec.host}:{monitor.spec.port}{monitor.spec.path}")


endpoint = ServiceEndpoint("monitors-system", "monitors")
webhooks = Webhooks(upgrade, downgrade, endpoint=endpoint, name="monitors-conversion")

if __name__ == "__main__":
    Manager().add(monitors, webhooks).run()
