"""Code shared by the papers: rows of tables, statements, trials of a user's methods."""
