"""Go's fmt: `print`, `println` and `printf` with its verbs."""

from ostinato.gotemplate.fmt.printer import sprint, sprintf, sprintln, text

__all__ = ["sprint", "sprintf", "sprintln", "text"]
