"""What an object is: names, schemas, metadata, selectors, quantities, patches, apply, errors. Pure, without I/O."""
