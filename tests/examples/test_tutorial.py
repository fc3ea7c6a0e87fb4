"""The tutorial's controller runs as the page says, and kubectl prints what the page shows."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.cluster.running import SECONDS, running

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "controller.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def shown() -> list[tuple[list[str], str]]:
    """The kubectl commands of the page, and what it shows of their output."""
    (console,) = [block for block in blocks("console") if "kubectl apply" in block]
    texts = [text.partition("\n") for text in console.split("$ ")[1:]]
    return [(shlex.split(command), output) for command, _, output in texts]


def plain(output: str) -> str:
    """Without what is never twice the same: ages, and spaces at the end."""
    lines = [re.sub(r"\b\d+s\b", "0s", line).rstrip() for line in output.strip().splitlines()]
    return "\n".join(lines)


def test_kubectl_prints_the_output_of_the_tutorial(go_programs: Path, tmp_path: Path) -> None:
    (tmp_path / "widget.py").write_text(blocks("python")[0])
    (tmp_path / "tea.yaml").write_text(blocks("yaml")[0])
    command = ("-m", "ostinato.cli", "run", "--embedded", str(tmp_path / "widget.py"))
    with running(tmp_path / "log", *command) as program:
        kubeconfig = program.wait_for_output("embedded cluster ready at").split()[-1]
        assert program.wait_for_output("running") == "running widgets\n"
        for (_, *arguments), output in shown():
            done = subprocess.run(
                [str(go_programs / "kubectl"), *arguments],
                cwd=tmp_path,
                env={"KUBECONFIG": kubeconfig, "HOME": str(tmp_path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert plain(done.stdout) == plain(output), arguments
        assert program.stop() == 0, program.log()
