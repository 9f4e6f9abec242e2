"""Data sets: what is known of each, fetching and checking it, its reader, and generated data.

================  ==============================================================================
module            what
================  ==============================================================================
``registry``      config/datasets.yaml as frozen dataclasses; :class:`DataError`
``fetch``         source -> verified file and receipt -> arrays
``hopkins155``    reader of the Hopkins 155 motion segmentation benchmark; ``Sequence``
``motion``        generated motion sequences, the declared substitute for Hopkins 155
``synthetic``     points on random subspaces
``gowalla``       readers of Gowalla check-in locations, whole and in part; generated stand-in
``lifesci``       reader of the Life Sciences set ds1.10; generated stand-in
``s1``            reader of S1, 15 clusters in the plane; generated stand-in
``clusters``      Gaussian mixtures of any size, drawn chunk by chunk
``planar``        three Gaussians in the plane, people on a map
================  ==============================================================================
"""
