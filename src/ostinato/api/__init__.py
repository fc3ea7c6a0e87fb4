"""What an object is: names, schemas, metadata, selectors, quantities, patches, apply, errors. Pure functions, no I/O."""
