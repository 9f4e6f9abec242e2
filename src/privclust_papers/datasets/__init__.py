"""Data sets: what is known of each, fetching and checking it, its reader, and generated data.

A reader ``read(path)``, or ``read_part(path)`` of a part, takes the path of the fetched file and
returns arrays by name; it raises a `DataError`, whose message names the file, if that is damaged or
incomplete, or holds something else, and an ImportError if a package that reads it is missing. A
generator ``generate(seed)`` returns the same arrays; the seed, an integer of at least 0, decides
all that is drawn, and a ValueError says which number is out of range.
"""
