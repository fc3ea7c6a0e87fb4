"""The page of a real control plane: three questions in three clicks, healing, hostile text, attacks of other sites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect

from .facts import HOSTILE
from .programs import Program, plane, running

LOOP = ["sh", "-c", "while :; do echo working; sleep 1; done"]
STARTING = 120_000  # milliseconds for the page of a plane that is starting, on busy cores


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plane")


@pytest.fixture(scope="module")
def cluster(state: Path) -> Iterator[Program]:
    with plane(state) as program:
        yield program


@pytest.fixture(scope="module")
def api(cluster: Program, state: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(state / "admin.kubeconfig")) as opened:
        yield opened
        remove_pods(opened)


def remove_pods(api: client.ApiClient) -> None:
    """Delete all Pods and wait until they are gone: their processes outlive the control plane."""
    core = client.CoreV1Api(api)
    client.AppsV1Api(api).delete_collection_namespaced_deployment("default", propagation_policy="Background")
    core.delete_collection_namespaced_pod("default")
    found = core.list_namespaced_pod("default")
    left = {pod.metadata.name for pod in found.items}
    events = watch.Watch()
    arguments = {"resource_version": found.metadata.resource_version, "timeout_seconds": 30}
    for event in events.stream(core.list_namespaced_pod, "default", **arguments) if left else ():
        name = event["object"].metadata.name
        (left.discard if event["type"] == "DELETED" else left.add)(name)
        if not left:
            events.stop()
    assert not left


@pytest.fixture
def start(cluster: Program, context: BrowserContext, page: Page) -> Page:
    """The start page, with access."""
    cluster.enter(context)
    page.goto(cluster.address)
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible(timeout=STARTING)
    return page


class Clicks:
    """Clicks on what people see, counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, target: Locator) -> None:
        target.click()
        self.count += 1


def deployment(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": LOOP, "env": [{"name": "VERSION", "value": "1"}]}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def workload(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(
        has=page.get_by_role("link", name=f"Deployment default/{name}", exact=True)
    )


def wait_until_ready(page: Page, name: str) -> None:
    expect(workload(page, name).get_by_role("img", name="2 of 2 Pods ready")).to_be_visible(timeout=30_000)


def headline(page: Page) -> Locator:
    return page.locator(".why-headline")


def test_why_was_this_deployments_pod_replaced_is_answered_in_three_clicks(
    start: Page, api: client.ApiClient, screenshot: Callable[[str], Path]
) -> None:
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment("default", deployment("web"), field_manager="alice")
    wait_until_ready(start, "web")
    screenshot("deployment-applied")
    change = {"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "2"}
    apps.patch_namespaced_deployment("web", "default", [change], field_manager="bob")
    click = Clicks()
    click(start.get_by_role("link", name="Deployment default/web", exact=True))
    click(start.get_by_role("link", name=re.compile("Why was Pod web-.* deleted")).first)
    expect(start.locator(".verdict")).to_contain_text("deleted", timeout=30_000)
    expect(headline(start)).to_contain_text("because bob updated Deployment web")
    expect(headline(start)).to_contain_text("1 → 2")
    assert click.count <= 3
    chain = start.get_by_role("list", name="From the cause to the effect").get_by_role("listitem")
    expect(chain.first).to_contain_text("bob updated Deployment default/web")
    expect(chain.filter(has_text="deployment-controller reconciled").first).to_be_visible()
    expect(chain.last).to_contain_text("deleted Pod")
    screenshot("why-was-this-pod-replaced")


def test_a_killed_pod_is_replaced_and_the_page_shows_the_healing(
    start: Page, api: client.ApiClient, screenshot: Callable[[str], Path]
) -> None:
    client.AppsV1Api(api).create_namespaced_deployment("default", deployment("healing"), field_manager="alice")
    wait_until_ready(start, "healing")
    pods = client.CoreV1Api(api).list_namespaced_pod("default", label_selector="app=healing").items
    victim = pods[0].metadata.name
    start.get_by_role("combobox", name="Search").fill(victim)
    start.get_by_role("option", name=f"Pod default/{victim}").click()
    start.get_by_role("button", name="Delete…").click()
    start.get_by_role("button", name=f"Delete {victim}").click()
    expect(start.locator(".verdict")).to_contain_text("deleted", timeout=30_000)
    screenshot("pod-killed")
    start.get_by_role("link", name="Overview", exact=True).click()
    wait_until_ready(start, "healing")
    screenshot("pod-healed")
    start.get_by_role("link", name="Deployment default/healing", exact=True).click()
    start.get_by_role("link", name=re.compile("Why was Pod healing-.* created")).first.click()
    expect(headline(start)).to_contain_text(f"was created because a user of this page deleted Pod {victim}.")
    chain = start.get_by_role("list", name="From the cause to the effect").get_by_role("listitem")
    expect(chain).to_have_count(3)
    expect(chain.nth(0)).to_contain_text(f"a user of this page deleted Pod default/{victim}")
    expect(chain.nth(1)).to_contain_text("replicaset-controller reconciled")
    expect(chain.nth(2)).to_contain_text("replicaset-controller created Pod")


def test_what_keeps_this_object_from_being_deleted_is_answered_in_three_clicks(
    start: Page, api: client.ApiClient, screenshot: Callable[[str], Path]
) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map("default", {"metadata": {"name": "held", "finalizers": ["example.dev/cleanup"]}})
    core.delete_namespaced_config_map("held", "default")
    click = Clicks()
    click(start.get_by_role("link", name="What keeps ConfigMap default/held from being deleted?"))
    expect(headline(start)).to_contain_text("is kept by the finalizer example.dev/cleanup")
    assert click.count <= 3
    screenshot("what-keeps-this-object")
    core.patch_namespaced_config_map("held", "default", {"metadata": {"finalizers": None}})


SLOW = """
import asyncio

from ostinato import controller
from ostinato.kinds.core_v1 import ConfigMap


@controller(ConfigMap, max_concurrent=1)
async def snail(config: ConfigMap, ctx) -> None:
    await asyncio.sleep(1.5)
"""


def test_which_controller_is_behind_and_why_is_answered_in_three_clicks(
    api: client.ApiClient,
    state: Path,
    context: BrowserContext,
    page: Page,
    tmp_path: Path,
    screenshot: Callable[[str], Path],
) -> None:
    for number in range(5):
        client.CoreV1Api(api).create_namespaced_config_map("default", {"metadata": {"name": f"work-{number}"}})
    (tmp_path / "slow.py").write_text(SLOW)
    kubeconfig = str(state / "admin.kubeconfig")
    with running("run", "--kubeconfig", kubeconfig, "--page", ":0", str(tmp_path / "slow.py")) as program:
        program.enter(context)
        page.goto(program.address)
        click = Clicks()
        behind = page.get_by_role("region", name="Which controller is behind?").get_by_role("link", name="snail")
        expect(behind).to_contain_text("its one worker is busy, and a reconcile takes 1.5 s", timeout=30_000)
        click(behind)
        expect(page.get_by_role("heading", level=1)).to_have_text("snail")
        expect(page.get_by_text("Behind", exact=True)).to_be_visible()
        assert click.count <= 3
        screenshot("which-controller-is-behind")


def test_hostile_annotations_and_event_messages_stay_text(start: Page, cluster: Program, api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    hostile = {"metadata": {"name": "hostile", "annotations": {"note": HOSTILE}}, "data": {"a": HOSTILE}}
    created = core.create_namespaced_config_map("default", hostile)
    involved = {"kind": "ConfigMap", "name": "hostile", "namespace": "default", "uid": created.metadata.uid}
    event = {
        "metadata": {"name": "hostile.1"},
        "involvedObject": involved,
        "message": HOSTILE,
        "type": "Normal",
        "reason": "X",
    }
    core.create_namespaced_event("default", event)
    view = f"{cluster.address}#/object?apiVersion=v1&kind=ConfigMap&namespace=default&name=hostile"
    for tab in ("fields", "events", "writes"):
        start.goto(f"{view}&tab={tab}")
        if tab != "writes":
            expect(start.get_by_role("tabpanel").get_by_text(HOSTILE).first).to_be_visible()
        assert start.locator("img").count() == 1
    assert "pwned" not in start.title()


def test_logs_follow_and_a_shell_runs_in_the_container(start: Page, cluster: Program, api: client.ApiClient) -> None:
    container = {"name": "main", "image": "none", "command": LOOP}
    core = client.CoreV1Api(api)
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    core.create_namespaced_pod("default", {"metadata": {"name": "worker"}, "spec": spec})
    start.goto(f"{cluster.address}#/pods")
    row = start.get_by_role("link", name=re.compile("ready worker"))
    expect(row).to_be_visible(timeout=30_000)
    row.click()
    expect(start.get_by_role("log")).to_contain_text("working\nworking")
    start.get_by_role("tab", name="Shell").click()
    expect(start.get_by_text("connected")).to_be_visible()
    start.keyboard.type("echo $((40 + 2))\n")
    expect(start.locator(".xterm-rows")).to_contain_text("42")


def test_without_the_cookie_nothing_is_served(start: Page, cluster: Program, browser: Browser) -> None:
    stranger = browser.new_context()
    used = cluster.url.removeprefix(cluster.address)
    for path in ("", "assets/app.js", "api/about", "api/stream", "api/objects", "?token=guess", used):
        assert stranger.request.get(cluster.address + path).status == 401, path
    stranger.close()


@pytest.mark.parametrize("origin", ["http://evil.test", "http://127.0.0.1:9"])
def test_other_origins_can_neither_read_write_nor_frame_the_page(
    start: Page, cluster: Program, context: BrowserContext, origin: str
) -> None:
    evil = context.new_page()  # of the same browser, which has the cookie
    evil.route(f"{origin}/**", lambda route: route.fulfill(content_type="text/html", body="<title>evil</title>"))
    evil.goto(f"{origin}/")
    read = "(url) => fetch(url + 'api/about', { credentials: 'include' }).then((r) => r.text())"
    with pytest.raises(Error, match="Failed to fetch"):
        evil.evaluate(read, cluster.address)
    answers: list[int] = []
    evil.on("response", lambda response: answers.append(response.status))
    body = '{"ref":{"apiVersion":"v1","kind":"Namespace","namespace":"","name":"default","uid":"1"}}'
    write = (
        "([url, body]) => fetch(url + 'api/delete', { method: 'POST', mode: 'no-cors', credentials: 'include', body })"
    )
    with pytest.raises(Error, match="Failed to fetch"):  # Cross-Origin-Resource-Policy hides even the answer
        evil.evaluate(write, [cluster.address, body])
    assert [status for status in answers if status < 400] == []
    evil.evaluate(
        "(url) => new Promise((done) => { const frame = document.createElement('iframe'); frame.onload = done;"
        " frame.src = url; document.body.append(frame); })",
        cluster.address,
    )
    assert all("Ostinato" not in frame.title() for frame in evil.frames)


def test_a_websocket_of_another_origin_opens_no_shell(start: Page, cluster: Program, context: BrowserContext) -> None:
    evil = context.new_page()
    evil.route(
        "http://127.0.0.1:9/**", lambda route: route.fulfill(content_type="text/html", body="<title>evil</title>")
    )
    evil.goto("http://127.0.0.1:9/")
    url = cluster.address.replace("http:", "ws:") + "api/pods/exec?namespace=default&name=worker"
    opened = evil.evaluate(
        "(url) => new Promise((done) => { const socket = new WebSocket(url, ['v5.channel.k8s.io']);"
        " socket.onopen = () => done(true); socket.onerror = () => done(false); })",
        url,
    )
    assert opened is False
