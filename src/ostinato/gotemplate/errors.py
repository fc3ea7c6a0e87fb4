"""Errors of templates, with the messages of Go."""

from __future__ import annotations


class TemplateError(ValueError):
    """A template that cannot be parsed or executed.

    Functions of templates raise it (or any ValueError) for errors that the author of the template should see.
    """


class ParseError(TemplateError):
    """A template whose text is not valid: `template: NAME:LINE: ...`."""


class ExecutionError(TemplateError):
    """A template that failed: `template: NAME:LINE:COLUMN: executing "NAME" at <...>: ...`."""


class LimitError(TemplateError):
    """A template that took more steps, memory or depth than its limits allow."""
