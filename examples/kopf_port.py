"""A kopf operator, ported: a daemon, a timer and an index, for the kind of kopf's examples.

    $ ostinato run --embedded examples/kopf_port.py
    $ kubectl apply -f examples/kopf_port.yaml              # with the kubeconfig that it prints
    $ kubectl get kopfexamples -w

| kopf | here |
|---|---|
| `@kopf.daemon` with `stopped.wait(…)` | `ping`: an `async def` that sleeps; it is cancelled with its object |
| `@kopf.timer(interval=…, idle=…)` | `measure`: called at intervals once the object has not changed for a while |
| `@kopf.index("pods", field=…)` | an index of the cached Pods by phase, which `count` uses by `fields=` |
| `@kopf.on.event("pods")` | `watches=[WatchKind(Pod, map_to=…)]`: a changed Pod reconciles its object |
| `patch.status[…] = …` | `ctx.status(…)`: a patch, sent if something changes |

kopf keeps progress in annotations and adds its own finalizer; here objects hold what the operator writes, nothing else.
"""

from typing import Annotated

from ostinato import Column, Context, CustomResource, Ge, Manager, NamespacedName, Struct, controller, daemon, timer
from ostinato.cache import FeedOptions, InformerSettings, by_field
from ostinato.controllers import WatchKind
from ostinato.kinds.core_v1 import Pod
from ostinato.manager import CacheOptions

LABEL = "kopf.dev/example"  # on a Pod: the name of its KopfExample


class KopfExampleSpec(Struct):
    seconds: Annotated[int, Ge(1)] = 5


class KopfExampleStatus(Struct):
    pings: Annotated[int, Column("Pings")] = 0
    measured: int = 0
    running_pods: Annotated[int, Column("Running")] = 0


class KopfExample(CustomResource, group="kopf.dev", version="v1", short_names=["kex"]):
    spec: KopfExampleSpec
    status: KopfExampleStatus | None = None


@daemon(KopfExample)
async def ping(example: KopfExample, ctx: Context) -> None:
    """Run as long as the object exists. A change of the spec applies to the next round."""
    pings = example.status.pings if example.status else 0
    while True:
        current = await ctx.client.get(KopfExample, ctx.request)
        await ctx.sleep(current.spec.seconds)
        pings += 1
        await ctx.status(pings=pings)


@timer(KopfExample, every=60, idle=10)
async def measure(example: KopfExample, ctx: Context) -> None:
    """Run every minute, but not within ten seconds after a change."""
    await ctx.status(measured=(example.status.measured if example.status else 0) + 1)


def example_of(pod: Pod) -> list[NamespacedName]:
    name = pod.metadata.labels.get(LABEL)
    return [NamespacedName(pod.metadata.namespace, name)] if name else []


@controller(KopfExample, watches=[WatchKind(Pod, map_to=example_of)])
async def count(example: KopfExample, ctx: Context) -> None:
    """Count the running Pods of the object. The list is read from the cache, by its index."""
    labels = {LABEL: example.metadata.name}
    running = await ctx.client.list(
        Pod, namespace=example.metadata.namespace, labels=labels, fields={"status.phase": "Running"}
    )
    await ctx.status(running_pods=len(running))


INDEXES = FeedOptions(indexes=(by_field("status.phase"),))
CACHES = CacheOptions(settings={Pod: InformerSettings(feed=INDEXES)})

Manager(caches=CACHES).add(ping, measure, count).run()
