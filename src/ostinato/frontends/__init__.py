"""Front ends: other forms of operators than a reconciler, each an adapter around the shared `kernel`."""
