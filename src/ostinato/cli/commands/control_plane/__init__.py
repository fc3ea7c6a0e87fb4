"""Commands of a control plane and its parts: servers, nodes, stores, users, images."""
