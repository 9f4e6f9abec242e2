"""How rows enter: arrays, files, tables and engines, read in chunks and by column."""
