"""Code shared by the papers: rows of tables, statements."""
