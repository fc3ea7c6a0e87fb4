"""What test_supervised runs as a process: reports that it is ready, then does what its options say.

It has the command line and the control socket of `ostinato.cli.processes.child`, and imports nothing of Ostinato, so
that it starts in an instant.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

control = socket.socket(fileno=int(sys.argv[2]))
attachment = json.loads(control.makefile("rb").readline())
options = attachment["options"]
starts = Path(options["starts"])
with starts.open("a") as file:
    file.write(f"{os.getpid()}\n")
is_first = len(starts.read_text().splitlines()) == 1
if options.get("leaves") and is_first:
    left = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)  # has the standard error of this process
    Path(options["leaves"]).write_text(str(left.pid))
control.sendall(json.dumps({"type": "ready", "url": "https://127.0.0.1:1"}).encode() + b"\n")
if options.get("dies") and is_first:
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
