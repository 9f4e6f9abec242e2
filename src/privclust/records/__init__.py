"""Input of rows from arrays, files, tables and engines, in chunks and by column."""
