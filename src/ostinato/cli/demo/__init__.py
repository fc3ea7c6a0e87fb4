"""`ostinato demo`: apply, heal, scale, roll out and delete a Deployment, and show which component does what.

A control plane runs in this process, with one node whose containers are processes. The demo is an ordinary client: it
uses HTTPS and the admin kubeconfig, and shows what its watches report.

- `command`: the command; `cluster`: the control plane, and its removal.
- `scenario`: the steps.
- `changes`: watch events as changes, each with a time and the component that made it.
- `timeline`, `tree`: changes and objects as lines.
- `screen`, `picture`: lines on a terminal, in a file, in an SVG.
"""
