"""config/features.yaml: which features are extracted of which images.

The workflow reads it each time it starts, so nothing heavy is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privclust.core.config import ConfigError, load_validated
from privclust.features._weights import weights_sha256


@dataclass(frozen=True)
class FeatureEntry:
    """One entry of config/features.yaml.

    Attributes
    ----------
    name : str
        The entry's key.
    dataset : str
        The set of images.
    model : {"lite0", "lite1", "lite2"}
        The network.
    size : int
        Height and width that it is given, in pixels.
    pixels : int
        Height and width of the small images whose raw pixels are kept as a control.
    split : {"images", "classes"}
        How images are split into training and test: by the set's own split of images; or by
        classes, of which the first half, rounded up, is for training and no other for both.
    per_class : dict of str to (int or None)
        For ``train`` and ``test``, how many images of each class are kept at most: the first in
        the set's own order. None keeps all.
    classes : int or None
        How many classes are kept at most: the first that training has and the first that test
        has. None keeps all.
    """

    name: str
    dataset: str
    model: str
    size: int
    pixels: int
    split: str
    per_class: dict[str, int | None]
    classes: int | None = None

    def about(self) -> dict[str, Any]:
        """Return which images are taken, and of which set, as JSON values."""
        return {
            "features": self.name,
            "dataset": self.dataset,
            "split": self.split,
            "per_class": self.per_class,
            "classes": self.classes,
        }

    def spec(self) -> dict[str, Any]:
        """Return all that decides the features besides the images, as JSON values."""
        return asdict(self) | {"weights": weights_sha256(self.model)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> FeatureEntry:
        """Return the entry that `spec` describes, or what JSON made of it."""
        return cls(**{key: value for key, value in spec.items() if key != "weights"})


@dataclass(frozen=True)
class GivenFeatures:
    """An entry of config/features.yaml for features of a user's own.

    Attributes
    ----------
    name : str
        The entry's key.
    file : str
        An ``.h5``, ``.hdf5`` or ``.npz`` file, see `privclust.features.load_features`.
    split : {"images", "classes"}
        As of `FeatureEntry`; ``"images"`` needs an array ``train`` in the file.
    """

    name: str
    file: str
    split: str

    dataset = None  # no images are read

    def spec(self) -> dict[str, Any]:
        """Return all that decides the features besides the file's content, as JSON values."""
        return asdict(self)


def load_feature_sets(
    path: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    datasets: Iterable[str],
    datasets_path: str | os.PathLike[str],
) -> dict[str, FeatureEntry | GivenFeatures]:
    """Read and check the file that describes the feature sets.

    Parameters
    ----------
    path : path-like
        The file, such as ``config/features.yaml``.
    schema : path-like
        Its JSON schema, such as ``workflow/schemas/features.schema.yaml``.
    datasets : iterable of str
        Names of the data sets there are.
    datasets_path : path-like
        The file that defines those, for messages.

    Returns
    -------
    dict of str to FeatureEntry or GivenFeatures
        In the order of the file.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not YAML or breaks the schema, if an entry has the name of
        a data set, or is of a data set that there is not. The message names the file and the key,
        and says what stands there and what may.

    Examples
    --------
    >>> sets = load_feature_sets(
    ...     "config/features.yaml",
    ...     "workflow/schemas/features.schema.yaml",
    ...     ["cifar100", "cub200", "cars196"],
    ...     "config/datasets.yaml",
    ... )  # doctest: +SKIP
    >>> sets["cifar100_paper"].size  # doctest: +SKIP
    224
    """
    entries: Mapping[str, Any] = load_validated(path, schema)
    names = sorted(datasets)
    for name, entry in entries.items():
        if name in names:
            raise ConfigError(
                f"{path}: got the name {name!r}; it may be any that no data set has "
                f"(see {datasets_path})"
            )
        if "file" not in entry and entry["dataset"] not in names:
            raise ConfigError(
                f"{path}: {name}.dataset: got {entry['dataset']!r}; it may be one of "
                f"{', '.join(names)} (defined in {datasets_path})"
            )
    return {
        name: (GivenFeatures if "file" in entry else FeatureEntry)(name=name, **entry)
        for name, entry in entries.items()
    }
