"""The shim: the program that starts containers and stays with each of them until its end.

It is a program of its own, started without site packages (`python -I -S DIRECTORY`), and imports nothing of Ostinato's.

- `launcher`: the one process per node that forks a keeper for each container.
- `keeper`: holds a container's lock, carries its output, and records how it ended.
- `container`: turns a forked process into the container, or into a command that joins it.
- `root`: the container's own root file system; `privileges`, `seccomp`: what it may do; `kernel`: system calls.
- `attach`, `execution`: the two sockets of a keeper; `log`: the log file.
"""
