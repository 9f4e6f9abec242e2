"""config/features.yaml: which features are extracted of which images.

The workflow reads it each time it starts, so nothing heavy is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privclust.core.config import ConfigError, load_validated
from privclust.features import weights_sha256


@dataclass(frozen=True)
class FeatureEntry:
    """One entry of config/features.yaml."""

    name: str  # the entry's key
    dataset: str  # of images
    model: str  # of the network: "lite0", "lite1" or "lite2"
    size: int  # height and width that it is given, in pixels
    pixels: int  # height and width of the small images whose raw pixels are kept as a control
    # "images": training and test as the set's own split has them; "classes": the first half of
    # the classes, rounded up, is for training and no other for both
    split: str
    # for "train" and "test", how many images of each class are kept: the first of the set
    per_class: dict[str, int | None]
    # how many classes are kept: the first that training has, and that test has
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
    """An entry of config/features.yaml for features of a user's own."""

    name: str  # the entry's key
    file: str  # .h5, .hdf5 or .npz, see `privclust.features.load_features`
    split: str  # as of `FeatureEntry`; "images" needs an array ``train`` in the file

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
    """Read and check the file that describes the feature sets, config/features.yaml.

    `datasets` are the names of the data sets there are, `datasets_path` the file that defines them.
    A ConfigError names the file and the key, and says what stands there and what may.
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
