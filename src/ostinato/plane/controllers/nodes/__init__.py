"""Controllers of nodes: health, condition taints, and taint-based eviction of Pods."""
