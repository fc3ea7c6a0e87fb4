"""A program's event loop: it ends, whatever is still there."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, logging, threading
from ostinato.world.runner import program_runner

logging.basicConfig(format="%(message)s")

async def stubborn():
    while True:
        try:
            await asyncio.sleep(1000)
        except BaseException:
            pass

async def around():
    await stubborn()

async def polite():
    try:
        await asyncio.sleep(1000)
    finally:
        print("polite ends")

async def main():
    asyncio.create_task(around(), name="stubborn")
    asyncio.create_task(polite())
    asyncio.create_task(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0.01)
    print(await asyncio.to_thread(threading.current_thread) is not threading.main_thread())
    {end}

with program_runner(asyncio.new_event_loop) as runner:
    print(runner.run(main()))
print("over")
"""

LOGGED = "task suppresses its cancellation, abandoned"


def run(end: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.replace("{end}", end)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=15, check=False)


def test_tasks_that_suppress_cancellation_and_blocked_threads_do_not_keep_the_process_alive() -> None:
    done = run("return 'done'")
    assert (done.returncode, done.stdout) == (1, "True\ndone\npolite ends\nover\n"), "that is no good end"
    assert done.stderr == f"{LOGGED} task=stubborn\n"


def test_a_program_whose_tasks_end_does_so_in_good_order() -> None:
    program = PROGRAM.replace("except BaseException", "except LookupError").replace("{end}", "return 'done'")
    polite = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=15, check=False)
    assert (polite.returncode, polite.stdout, polite.stderr) == (0, "True\ndone\npolite ends\nover\n", "")


def test_an_error_of_the_program_is_raised_all_the_same() -> None:
    done = run("raise LookupError('broken')")
    assert (done.returncode, done.stdout) == (1, "True\npolite ends\n")
    assert done.stderr.startswith(f"{LOGGED} task=stubborn\n")
    assert "LookupError: broken" in done.stderr


STUCK_THREAD = """
import asyncio, threading
from ostinato.world import World

async def main():
    begun = threading.Event()
    def stuck():
        begun.set()
        threading.Event().wait()
    thread = World.real().executor.thread("stuck", lambda: asyncio.to_thread(stuck))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    thread.stop()
    await thread.join()

asyncio.run(main())
print("over")
"""


def test_a_thread_with_a_loop_waits_at_its_end_for_no_function_that_never_returns() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK_THREAD], capture_output=True, text=True, timeout=15, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
