"""Data sets: what is known of each, fetching and checking it, its reader, and generated data.

================  ==============================================================================
module            what
================  ==============================================================================
``registry``      config/datasets.yaml as frozen dataclasses; :class:`DataError`
``fetch``         source -> verified file and receipt -> arrays
``hopkins155``    reader of the Hopkins 155 motion segmentation benchmark; ``Sequence``
``motion``        generated motion sequences, the declared substitute for Hopkins 155
``kt3dmoseg``     reader of KT3DMoSeg, windows of complete tracks; generated stand-in
``synthetic``     points on random subspaces
``gowalla``       readers of Gowalla check-in locations, whole and in part; generated stand-in
``lifesci``       reader of the Life Sciences set ds1.10; generated stand-in
``s1``            reader of S1, 15 clusters in the plane; generated stand-in
``yaleb``         reader of the Extended Yale Face Database B; generated stand-in
``images``        layout of image sets, archives of them; generated stand-in
``cars196``       readers of image sets, as are ``cifar100`` and ``cub200``
``clusters``      Gaussian mixtures of any size, drawn chunk by chunk
``planar``        three Gaussians in the plane, people on a map
================  ==============================================================================

A reader ``read(path)``, or ``read_part(path)`` of a part, takes the path of the fetched file and
returns arrays by name; it raises a `DataError`, whose message names the file, if that is damaged or
incomplete, or holds something else, and an ImportError if a package that reads it is missing. A
generator ``generate(seed)`` returns the same arrays; the seed, an integer of at least 0, decides
all that is drawn, and a ValueError says which number is out of range.
"""
