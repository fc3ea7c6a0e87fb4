"""metadata.managedFields: the entries of field managers, and how writes update them."""
