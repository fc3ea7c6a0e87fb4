"""Images on this machine, without a registry: read from archives and directories, unpacked once, used by the runtimes.

- `archive`: OCI layouts, OCI archives and those of `docker save`.
- `layers`: unpacks layers into a directory.
- `store`: the images of the process runtime.
- `users`: users and groups as the image's own files define them.
- `build`, `dockerfile`: images from directories and from Dockerfiles.
- `containerd`: puts images into containerd.
"""
