"""Errors of tasks: a fatal one stops the plan, any other is tried again."""

from __future__ import annotations


class FatalError(Exception):
    """Trying again cannot help. `reason`: of the Event about it."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


RENDERING = "TaskRenderingError"
ENHANCEMENT = "TaskEnhancementError"
TERMINAL_STATE = "FailedTerminalStateError"
TOGGLE = "ToggleTaskError"
PIPE = "PipeTaskError"
DUMMY = "DummyTaskError"
VALIDATION = "ResourceValidationError"
BUILD = "TaskBuildError"
UNKNOWN_TASK = "UnknownTaskName"
