"""/statusz, /flagz, /metrics/slis and /debug/pprof, as kube-apiserver answers them."""

from __future__ import annotations

import gzip
import json

import pytest
from tests.unit.server.publish.samples import ask, new_server

from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

STATUSZ = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"


@pytest.fixture
def server() -> Server:
    return new_server()


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain", "application/json, */*"])
def test_statusz_is_text_for_people(server: Server, accept: str) -> None:
    answer = ask(server, "/statusz", accept=accept)
    assert (answer.status, answer.content_type) == (200, "text/plain; charset=utf-8")
    lines = answer.body.decode().splitlines()
    assert lines[1] == "apiserver statusz"
    assert "Paths: /flagz /healthz /livez /metrics /readyz /statusz /version" in lines


def test_statusz_is_an_object_for_clients_that_ask_for_it(server: Server) -> None:
    answer = ask(server, "/statusz", accept=STATUSZ)
    shown = json.loads(answer.body)
    assert answer.content_type == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    assert (shown["kind"], shown["apiVersion"]) == ("Statusz", "config.k8s.io/v1beta1")
    assert shown["emulationVersion"] == "1.36"
    assert "warning" not in dict(answer.headers)


def test_an_old_version_of_statusz_is_served_with_a_warning(server: Server) -> None:
    answer = ask(server, "/statusz", accept=STATUSZ.replace("beta", "alpha"))
    assert json.loads(answer.body)["apiVersion"] == "config.k8s.io/v1alpha1"
    assert any("statusz endpoint is deprecated" in value for _, value in answer.headers)


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html", STATUSZ.replace("v1beta1", "v1"), STATUSZ.replace("Status", "Flag")]
)
def test_other_forms_of_statusz_are_not_acceptable(server: Server, accept: str) -> None:
    answer = ask(server, "/statusz", accept=accept)
    assert (answer.status, json.loads(answer.body)["reason"]) == (406, "NotAcceptable")


def test_flagz_shows_the_command_line() -> None:
    server = Server(World.real(), MemoryLog(), flags={"listen": "127.0.0.1:6443", "api-audiences": "[a,b]"})
    server.authenticator.add("t", User("admin", groups=("system:masters",)))
    lines = ask(server, "/flagz").body.decode().splitlines()
    assert lines[1] == "apiserver flagz"
    assert lines[3:] == ["api-audiences=[a,b]", "listen=127.0.0.1:6443"]


@pytest.mark.parametrize("path", ["/statusz", "/flagz", "/debug/pprof/", "/metrics/slis"])
def test_pages_for_debugging_need_permission(server: Server, path: str) -> None:
    server.authenticator.add("u", User("jane", groups=("system:authenticated",)))
    assert ask(server, path, authorization="Bearer u").status == 403


def test_health_checks_are_counted(server: Server) -> None:
    ask(server, "/readyz")
    text = ask(server, "/metrics/slis").body.decode()
    assert 'kubernetes_healthcheck{name="etcd",type="readyz"} 1' in text
    assert 'kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 1' in text


def test_the_index_of_profiles_lists_them(server: Server) -> None:
    redirect = ask(server, "/debug/pprof")
    assert (redirect.status, dict(redirect.headers)["Location"]) == (302, "/debug/pprof/")
    index = ask(server, "/debug/pprof/").body.decode()
    for name in ("goroutine", "heap", "profile", "threadcreate"):
        assert f"<a href='{name}?debug=1'>" in index


@pytest.mark.parametrize("path", ["/debug/pprof/cmdline", "/debug/pprof/nope", "/debug/pprof/goroutine/x"])
def test_unknown_profiles_are_not_found(server: Server, path: str) -> None:
    answer = ask(server, path)
    assert (answer.status, answer.body) == (404, b"Unknown profile\n")


def test_a_path_that_only_begins_like_a_profile_is_no_page(server: Server) -> None:
    assert ask(server, "/debug/pprofiles").body == b"404 page not found\n"


@pytest.mark.parametrize("name", ["goroutine", "threadcreate", "heap", "allocs", "block", "mutex"])
def test_profiles_are_protobuf_and_text(server: Server, name: str) -> None:
    answer = ask(server, f"/debug/pprof/{name}")
    assert dict(answer.headers)["Content-Disposition"] == f'attachment; filename="{name}"'
    assert b"count" in gzip.decompress(answer.body)
    assert ask(server, f"/debug/pprof/{name}?debug=1").content_type == "text/plain; charset=utf-8"


def test_a_profile_samples_the_threads_of_the_server(server: Server) -> None:
    profile = gzip.decompress(ask(server, "/debug/pprof/profile?seconds=1").body)
    assert b"MainThread" in profile
    assert b"nanoseconds" in profile
