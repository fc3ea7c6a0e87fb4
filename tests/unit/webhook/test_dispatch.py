"""What bounds the work on reviews, and the numbers that are kept of it."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.webhook.samples import (
    Answered,
    Widget,
    WidgetV2,
    admission_review,
    conversion_review,
    post,
    posted,
    widget,
)

from ostinato.webhook import Denied, Dispatcher, Limits, converter, validator
from ostinato.webhook.dispatch import BodyTooLarge
from ostinato.world import Simulation

PATH = "/validate-example-dev-v1-widget"


def hook_that_waits(simulation: Simulation, seconds: float) -> Dispatcher:
    @validator(Widget)
    async def check(widget: Widget) -> None:
        await simulation.clock.sleep(seconds)

    dispatcher = Dispatcher(simulation, limits=Limits(seconds=20, concurrent=2))
    dispatcher.add([check])
    return dispatcher


def test_an_unknown_path_is_not_found_and_the_known_ones_are_named() -> None:
    simulation = Simulation(1)
    dispatcher = hook_that_waits(simulation, 0)
    answer = Answered(simulation.run(dispatcher.handle(posted(b"", "/validate-other"))))
    assert (answer.http, answer.text) == (404, f"no webhook at /validate-other; paths: {PATH}\n")
    empty = Answered(simulation.run(Dispatcher(simulation).handle(posted(b"", "/convert"))))
    assert (empty.http, empty.text) == (404, "no webhook at /convert; paths: none\n")


def test_a_hook_that_takes_too_long_is_cancelled_and_the_request_refused() -> None:
    simulation = Simulation(1)
    dispatcher = hook_that_waits(simulation, 3600)
    answer = Answered(simulation.run(dispatcher.handle(posted(admission_review(widget())))))
    assert (answer.allowed, answer.status["code"]) == (False, 504)
    assert answer.message == f"{PATH} timed out after 20 s"
    assert answer.response["uid"] == "705ab4f5"
    assert simulation.clock.monotonic() == pytest.approx(20)


def test_no_longer_is_worked_than_the_server_waits() -> None:
    simulation = Simulation(1)
    dispatcher = hook_that_waits(simulation, 3600)
    answer = Answered(simulation.run(dispatcher.handle(posted(admission_review(widget()), seconds=3.0))))
    assert answer.message == f"{PATH} timed out after 3 s"


def test_a_request_whose_body_does_not_arrive_times_out() -> None:
    simulation = Simulation(1)

    async def read(most: int) -> bytes:
        await simulation.clock.sleep(3600)
        return b""

    dispatcher = hook_that_waits(simulation, 0)
    answer = Answered(simulation.run(dispatcher.handle(posted(b"", read=read))))
    assert (answer.status["code"], answer.response["uid"]) == (504, "")


def test_a_conversion_waits_for_no_hook() -> None:
    simulation = Simulation(1, workers=1)

    @validator(Widget)
    def check(widget: Widget) -> None:
        # As a hook does that asks a server for something that is kept in another version.
        answers.append(Answered(simulation.executor.block_on(dispatcher.handle(asked))))

    @converter
    def up(old: Widget) -> WidgetV2:
        return WidgetV2(metadata=old.metadata)

    @converter
    def down(new: WidgetV2) -> Widget:
        return Widget(metadata=new.metadata)

    answers: list[Answered] = []
    asked = posted(conversion_review([widget()]), "/convert")
    dispatcher = Dispatcher(simulation, limits=Limits(seconds=20, concurrent=1))
    dispatcher.add([check, up, down])
    answer = Answered(simulation.run(dispatcher.handle(posted(admission_review(widget())))))
    assert answer.allowed
    assert [each.response["convertedObjects"][0]["apiVersion"] for each in answers] == ["example.dev/v2"]


def test_a_converter_that_takes_too_long_fails_the_review() -> None:
    simulation = Simulation(1, latency=lambda rng: 60.0)

    @converter
    def up(old: Widget) -> WidgetV2:
        return WidgetV2()

    answer = simulation.run(post(simulation, up, conversion_review([widget()])))
    assert answer.message == "/convert timed out after 30 s"


def test_the_number_of_concurrent_reviews_is_limited() -> None:
    simulation = Simulation(1)
    dispatcher = hook_that_waits(simulation, 5)

    async def main() -> list[float]:
        ended = []

        async def one() -> None:
            answer = Answered(await dispatcher.handle(posted(admission_review(widget()))))
            assert answer.allowed
            ended.append(simulation.clock.monotonic())

        await asyncio.gather(*(one() for _ in range(6)))
        return ended

    assert simulation.run(main()) == pytest.approx([5, 5, 10, 10, 15, 15])


def test_a_body_that_is_too_large_is_refused() -> None:
    simulation = Simulation(1)

    async def read(most: int) -> bytes:
        assert most == 7 * 1024 * 1024
        raise BodyTooLarge

    answer = Answered(simulation.run(hook_that_waits(simulation, 0).handle(posted(b"", read=read))))
    assert (answer.http, answer.allowed, answer.status["code"]) == (200, False, 413)
    assert answer.message == "request entity is too large; limit is 7340032 bytes"


@pytest.mark.parametrize(
    ("content_type", "message"),
    [
        ("text/plain", "contentType=text/plain, expected application/json"),
        ("", "contentType=, expected application/json"),
        ("application/json; charset=utf-8", ""),
        ("Application/JSON", ""),
    ],
)
def test_other_content_types_are_refused(content_type: str, message: str) -> None:
    simulation = Simulation(1)
    review = posted(admission_review(widget()), content_type=content_type)
    answer = Answered(simulation.run(hook_that_waits(simulation, 0).handle(review)))
    assert (answer.allowed, answer.message) == (not message, message)


def test_numbers_are_kept_under_the_names_of_controller_runtime() -> None:
    simulation = Simulation(1)

    @validator(Widget, path="/broken")
    def broken(widget: Widget) -> None:
        raise ZeroDivisionError

    @validator(Widget, path="/denies")
    def denies(widget: Widget) -> None:
        raise Denied("no")

    dispatcher = hook_that_waits(simulation, 5)
    dispatcher.add([broken, denies])

    async def main() -> None:
        under_way = asyncio.create_task(dispatcher.handle(posted(admission_review(widget()))))
        await simulation.clock.sleep(1)
        shown = {family.name: family for family in dispatcher.statistics.families()}
        in_flight = shown["controller_runtime_webhook_requests_in_flight"].samples
        assert (in_flight[0].labels["webhook"], in_flight[0].value) == (PATH, 1)
        await under_way
        for path in ("/broken", "/denies"):
            await dispatcher.handle(posted(admission_review(widget()), path))

    simulation.run(main())
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in dispatcher.statistics.families()
        for sample in family.samples
    }
    requests = "controller_runtime_webhook_requests_total"
    assert values[requests, ("code", "200"), ("webhook", "/denies")] == 1
    assert values[requests, ("code", "500"), ("webhook", "/broken")] == 0
    assert values["controller_runtime_webhook_panics_total",] == 1
    assert values["controller_runtime_conversion_webhook_panics_total",] == 0
    latency = "controller_runtime_webhook_latency_seconds"
    assert values[latency + "_sum", ("webhook", PATH)] == pytest.approx(5)
    assert values[latency + "_bucket", ("le", "1"), ("webhook", PATH)] == 0
    assert values[latency + "_bucket", ("le", "10"), ("webhook", PATH)] == 1
    assert values[latency + "_bucket", ("le", "+Inf"), ("webhook", PATH)] == 1
    assert values["controller_runtime_webhook_requests_in_flight", ("webhook", PATH)] == 0


def test_a_cancelled_review_is_counted() -> None:
    simulation = Simulation(1)
    dispatcher = hook_that_waits(simulation, 5)

    async def main() -> None:
        task = asyncio.create_task(dispatcher.handle(posted(admission_review(widget()))))
        await simulation.clock.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    simulation.run(main())
    samples = {s.labels.get("code"): s.value for f in dispatcher.statistics.families() for s in f.samples}
    assert samples["500"] == 1
