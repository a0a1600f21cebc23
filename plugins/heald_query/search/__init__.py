"""Full-text search: its index, what is indexed, and how what people type is found in it."""
