"""The sections: each module has `measure(context)`, which reports the figures of its rows."""
