"""Scripted situations on a control plane, and what came of them, normalised, to compare with what was recorded.

`plane/README.md` and `node/README.md`, beside this package, describe the keys of a scenario. Who does what:

- `server` sends requests, `observer` notes everything that happens, `nodes` plays the nodes; a `stage` has all three.
- `scene` is the namespace in which one scenario is played, `steps` are what a scenario can ask for.
- `paths`, `templates`, `history` and `normalise` are pure: values in, values out.
- `play` runs scenarios, `recordings` knows which there are, and what the real thing answers.
"""
