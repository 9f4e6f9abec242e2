"""config/features.yaml: which features are extracted of which images.

The workflow reads it each time it starts, so nothing heavy is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from privclust.features import network_name, weights_sha256
from privclust_papers.settings.config import ConfigError, load_validated

_FETCHED = frozenset({"resnet50"})  # models whose weights are a data set of the model's name


@dataclass(frozen=True)
class FeatureEntry:
    """One entry of config/features.yaml."""

    name: str  # the entry's key
    dataset: str  # of images
    model: str  # of the network, as `privclust.features.extract_features` has it
    size: int  # height and width that it is given, in pixels
    pixels: int  # height and width of the small images whose raw pixels are kept as a control
    # "images": training and test as the set's own split has them; "classes": the first half of
    # the classes, rounded up, is for training and no other for both
    split: str
    # for "train" and "test", how many images of each class are kept: the first of the set
    per_class: dict[str, int | None]
    # how many classes are kept: the first that training has, and that test has
    classes: int | None = None
    published: str | None = None  # the network whose features of these images the paper took

    @property
    def network(self) -> str:
        """The network's name in sentences."""
        return network_name(self.model)

    @property
    def weights(self) -> str | None:
        """The data set that holds the network's weights; None where a package does."""
        return self.model if self.model in _FETCHED else None

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
        spec = asdict(self) | {"weights": weights_sha256(self.model)}
        del spec["published"]  # it is for sentences alone
        return spec

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

    dataset = weights = None  # no images are read, no network is run

    def spec(self) -> dict[str, Any]:
        """Return all that decides the features besides the file's content, as JSON values."""
        return asdict(self)


def load_feature_sets(
    path: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    datasets: Iterable[str],
    datasets_path: str | os.PathLike[str],
    model: str | None = None,
) -> dict[str, FeatureEntry | GivenFeatures]:
    """Read and check the file that describes the feature sets, config/features.yaml.

    `datasets` are the names of the data sets there are, `datasets_path` the file that defines them;
    `model`, if not None, goes before what the entries say.
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
    sets: dict[str, FeatureEntry | GivenFeatures] = {}
    for name, entry in entries.items():
        if "file" in entry:
            sets[name] = GivenFeatures(name=name, **entry)
            continue
        extracted = FeatureEntry(name=name, **entry)
        sets[name] = extracted if model is None else replace(extracted, model=model)
        if sets[name].weights not in (None, *names):
            raise ConfigError(
                f"{path}: {name}.model: got {sets[name].model!r}, whose weights are a data set of "
                f"that name, which {datasets_path} does not define"
            )
    return sets


def other_networks(entries: Iterable[FeatureEntry | GivenFeatures]) -> str:
    """Return in words which networks stand in for the paper's; empty if none does."""
    others = [
        entry
        for entry in entries
        if isinstance(entry, FeatureEntry) and entry.published not in (None, entry.network)
    ]
    ours, published = (
        " and ".join(dict.fromkeys(getattr(entry, name) for entry in others))
        for name in ("network", "published")
    )
    return f"features of {ours} in place of {published}" if others else ""
