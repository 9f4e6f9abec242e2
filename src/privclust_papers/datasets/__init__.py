"""Data sets: registry, download and verification, readers, and generators of substitutes.

A reader ``read(path)``, or ``read_part(path)`` for a part, takes the path of the fetched file and
returns arrays by name. It raises a `DataError`, with the name of the file, if the file is damaged,
incomplete or of other content, and an ImportError if a package is missing. A generator
``generate(seed)`` returns the same arrays; its result is a function of the seed, an integer of at
least 0.
"""
