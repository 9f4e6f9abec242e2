"""What the papers share: rows of tables, statements, trials of a user's methods."""
