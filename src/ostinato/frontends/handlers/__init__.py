"""Handlers: an operator as functions that are called for what happens to an object.

    from ostinato import on

    @on.create("sites")
    def publish(spec, name, patch, **_):
        patch.status["length"] = len(spec["text"])

- Level-based underneath: a handler is called because the stored state says that it has not succeeded for this state of
  the object; an event that was missed, or a restart, loses none.
- Handlers are called at least once: one that has done its work when the process is killed is called again.
"""
