"""Controllers: loops that make what is match what is wanted, one object at a time."""
