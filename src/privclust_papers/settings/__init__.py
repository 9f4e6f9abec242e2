"""Config files, and the objects that they name by dotted paths."""
