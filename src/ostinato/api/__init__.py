"""The API machinery: objects, metadata, schemas, selectors, quantities, patches, server-side apply, errors. No I/O."""
