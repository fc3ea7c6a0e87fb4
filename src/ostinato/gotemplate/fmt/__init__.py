"""Go's fmt: `print`, `println` and `printf` with its verbs."""

from ostinato.gotemplate.fmt.printer import sprint, sprintln, text
from ostinato.gotemplate.fmt.printf import sprintf

__all__ = ["sprint", "sprintf", "sprintln", "text"]
