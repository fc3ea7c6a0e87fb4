from __future__ import annotations

from typing import Any

from ostinato.api.validation.field_errors import Path
from ostinato.server.resources.core.pods.spec.validation import validate_pod_template

PATH = Path("spec", "template")


def template(**container: Any) -> dict[str, Any]:
    whole = {
        "name": "main",
        "image": "web",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        **container,
    }
    spec = {"containers": [whole], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def test_only_valid_templates_are_remembered() -> None:
    for _ in range(2):
        assert validate_pod_template(template(), PATH) == []
        assert [each.field for each in validate_pod_template(template(name="Main"), PATH)] == [
            "spec.template.spec.containers[0].name"
        ]


def test_a_template_that_was_changed_in_place_is_validated_again() -> None:
    changed = template()
    assert validate_pod_template(changed, PATH) == []
    changed["spec"]["restartPolicy"] = "Sometimes"
    assert [each.field for each in validate_pod_template(changed, PATH)] == ["spec.template.spec.restartPolicy"]
