"""What handlers receive: views of the object, the patch, differences, filters; and what they do with children."""
