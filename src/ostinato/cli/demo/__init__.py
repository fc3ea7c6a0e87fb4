"""`ostinato demo`: the loop, played live: a Deployment applied, healed, scaled, renewed and deleted.

A whole plane runs in this process for the length of the play, with one node whose containers are real processes. The
play itself is a client like any other: it speaks HTTPS with the plane's kubeconfig, and what it shows it has watched.

- `stage`: the plane, and that nothing is left of it.
- `play`: the steps.
- `story`: what the watches tell, as changes with a time and a part that made them.
- `timeline`, `tree`: how changes and objects look.
- `screen`, `picture`: lines for a terminal, a file, an SVG.
"""
