"""One module per paper, one function per target: tables in, a drawing out."""
