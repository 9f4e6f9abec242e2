"""Input of rows from arrays, files and tables, in parts and by column."""
