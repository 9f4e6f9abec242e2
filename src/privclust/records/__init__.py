"""Input of rows from arrays, files and tables, in chunks and by column."""
