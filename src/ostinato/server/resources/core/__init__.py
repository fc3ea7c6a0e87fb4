"""The core group: Pods, Services, volumes, Nodes, Namespaces, configuration."""
