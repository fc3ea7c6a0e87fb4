"""Player of scripted scenarios on a control plane: normalised results, compared with recorded ones.

`plane/README.md` and `node/README.md`, beside this package, describe the keys of a scenario. The modules:

- `server` sends requests, `observer` records all watch events, `nodes` simulates nodes; a `stage` has all three.
- `scene` is the namespace of one scenario, `steps` implements the steps.
- `paths`, `templates`, `history` and `normalise` are pure: values in, values out.
- `play` runs scenarios, `recordings` loads them with their recorded answers.
"""
