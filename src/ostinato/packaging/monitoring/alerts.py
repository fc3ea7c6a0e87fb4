"""Alert rules. Each expression has the placeholder `%s` for its selector, once or several times."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from ostinato.packaging.manifest import formatted

Json = dict[str, Any]


class Alert(NamedTuple):
    """
    - `expression`: PromQL, with `%s` for the selector.
    - `minutes`: how long it must hold.
    - `webhooks`: for programs with webhooks only.
    """

    name: str
    expression: str
    minutes: int
    severity: Literal["warning", "critical"]
    summary: str
    description: str
    webhooks: bool = False


ALERTS: Final = (
    Alert(
        "OperatorDown",
        "absent(up{%s} == 1)",
        5,
        "critical",
        "No replica of the operator answers",
        "Prometheus has scraped no metrics for five minutes: objects are not reconciled.",
    ),
    Alert(
        "OperatorHasNoLeader",
        "max by (namespace, job, name) (leader_election_master_status{%s}) == 0",
        5,
        "critical",
        "No replica leads the election {{ $labels.name }}",
        "Replicas run, but none holds the Lease: check their permissions, and their connection to the API server.",
    ),
    Alert(
        "OperatorReconcileErrors",
        "sum by (namespace, job, controller) (rate(controller_runtime_reconcile_errors_total{%s}[10m])) / "
        "sum by (namespace, job, controller) (rate(controller_runtime_reconcile_total{%s}[10m])) > 0.1",
        15,
        "warning",
        "More than a tenth of the reconciles of {{ $labels.controller }} fail",
        "The log and the Warning Events of the objects name the cause.",
    ),
    Alert(
        "OperatorReconcilePanics",
        "increase(controller_runtime_reconcile_panics_total{%s}[10m]) > 0",
        0,
        "warning",
        "The controller {{ $labels.controller }} has a programming error",
        "A reconcile ended with an exception such as TypeError; the log has the traceback.",
    ),
    Alert(
        "OperatorTerminalErrors",
        "increase(controller_runtime_terminal_reconcile_errors_total{%s}[10m]) > 0",
        0,
        "warning",
        "The controller {{ $labels.controller }} gave up on an object",
        "The error is permanent: the object is reconciled again only when it changes.",
    ),
    Alert(
        "OperatorHotLoop",
        "increase(ostinato_reconcile_hot_loops_total{%s}[10m]) > 0",
        0,
        "warning",
        "The controller {{ $labels.controller }} reconciles an object in a loop",
        "Its own writes trigger it again: the log names the object and the field.",
    ),
    Alert(
        "OperatorQueueDelay",
        "histogram_quantile(0.99, sum by (namespace, job, name, le) "
        "(rate(workqueue_queue_duration_seconds_bucket{%s}[10m]))) > 60",
        15,
        "warning",
        "Objects wait more than a minute for the controller {{ $labels.name }}",
        "Raise its number of workers, or find out why reconciles are slow.",
    ),
    Alert(
        "OperatorStuckWorker",
        "workqueue_longest_running_processor_seconds{%s} > 600",
        5,
        "warning",
        "A reconcile of {{ $labels.name }} has been running for more than ten minutes",
        "Set a timeout for its calls to other systems.",
    ),
    Alert(
        "OperatorAPIErrors",
        'sum by (namespace, job) (rate(rest_client_requests_total{code=~"5..|<error>",%s}[10m])) / '
        "sum by (namespace, job) (rate(rest_client_requests_total{%s}[10m])) > 0.1",
        15,
        "warning",
        "More than a tenth of the requests to the API server fail",
        "The API server is overloaded or not reachable.",
    ),
    Alert(
        "OperatorForbidden",
        'increase(rest_client_requests_total{code="403",%s}[10m]) > 0',
        10,
        "warning",
        "The API server rejects requests of the operator",
        "Its roles lack a permission; `ostinato manifests` writes those that the program declares.",
    ),
    Alert(
        "OperatorUnreadableObjects",
        "increase(ostinato_unreadable_objects_total{%s}[10m]) > 0",
        0,
        "warning",
        "Objects of kind {{ $labels.kind }} cannot be decoded",
        "They do not fit the class and are skipped; the log names them.",
    ),
    Alert(
        "OperatorWebhookErrors",
        'sum by (namespace, job, webhook) (rate(controller_runtime_webhook_requests_total{code=~"5..",%s}[10m])) > 0',
        10,
        "warning",
        "The webhook {{ $labels.webhook }} fails",
        "Writes of its kinds are rejected if its failure policy is Fail.",
        webhooks=True,
    ),
    Alert(
        "OperatorCertificateErrors",
        "increase(certwatcher_read_certificate_errors_total{%s}[10m]) > 0",
        15,
        "warning",
        "The certificate of the webhook server cannot be renewed",
        "API servers reject the webhook once the certificate expires.",
        webhooks=True,
    ),
)


def alert_groups(selector: Any, *, name: str, webhooks: bool) -> list[Json]:
    """Return the rule groups. `selector`: label matchers without braces, a text or an Expression."""
    rules = []
    for alert in ALERTS:
        if alert.webhooks and not webhooks:
            continue
        expression = formatted(alert.expression, *[selector] * alert.expression.count("%s"))
        rules.append(
            {
                "alert": alert.name,
                "expr": expression,
                "for": f"{alert.minutes}m",
                "labels": {"severity": alert.severity, "operator": name},
                "annotations": {"summary": alert.summary, "description": alert.description},
            }
        )
    return [{"name": name, "rules": rules}]
