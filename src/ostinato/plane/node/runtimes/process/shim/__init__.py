"""The shim: a separate program that starts containers, like containerd-shim or conmon.

Started without site packages (`python -I -S DIRECTORY`); imports no other package of Ostinato.

- `launcher`: one process per node, which forks a keeper for each container.
- `keeper`: the process that waits for one container: holds its lock, writes its log, records its exit.
- `container`: turns a forked process into the container, or into a command that joins it.
- `root`: the container's root file system. `users`: user namespaces. `privileges`: user, capabilities, seccomp.
- `kernel`: system calls. `attach`, `execution`: the sockets of a keeper. `log`: the log file.
"""
