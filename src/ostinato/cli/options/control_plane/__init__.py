"""Arguments of the commands of a control plane and its parts."""
