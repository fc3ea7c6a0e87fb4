"""Resources: names, strategies, validation and tables of each kind; a package per API group."""
