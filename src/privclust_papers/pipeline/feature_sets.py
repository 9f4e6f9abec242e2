"""config/features.yaml: the extracted features and their images.

The workflow imports this module each time it starts, so that it imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from privclust.features import network_name, weights_sha256
from privclust_papers.settings.config import ConfigError, load_validated

_FETCHED = frozenset({"resnet50"})  # models with weights in a data set of the model's name


@dataclass(frozen=True)
class FeatureEntry:
    """One entry of config/features.yaml."""

    name: str  # the entry's key
    dataset: str  # of images
    model: str  # of the network, see `privclust.features.extract_features`
    size: int  # height and width of the network's input, in pixels
    pixels: int  # height and width of small images kept as raw pixels, a control
    # "images": training and test by the set's own split; "classes": the first half of the classes,
    # rounded up, is for training, the others for test
    split: str
    # for "train" and "test", the number of images per class: the first of the set
    per_class: dict[str, int | None]
    # the number of classes: the first of training, and of test
    classes: int | None = None
    published: str | None = None  # the paper's network for these images

    @property
    def network(self) -> str:
        """The network's name in text."""
        return network_name(self.model)

    @property
    def weights(self) -> str | None:
        """The data set of the network's weights; None if they are in a package."""
        return self.model if self.model in _FETCHED else None

    def spec(self) -> dict[str, Any]:
        """Return all settings of the features besides the images, as JSON values."""
        spec = asdict(self) | {"weights": weights_sha256(self.model)}
        del spec["published"]  # only for text
        return spec

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> FeatureEntry:
        """Return the entry of a `spec`, which may have passed through JSON."""
        return cls(**{key: value for key, value in spec.items() if key != "weights"})


def load_feature_sets(
    path: str | os.PathLike[str],
    schema: str | os.PathLike[str],
    datasets: Iterable[str],
    datasets_path: str | os.PathLike[str],
    model: str | None = None,
) -> dict[str, FeatureEntry]:
    """Return the feature sets of config/features.yaml, after validation.

    `datasets` are the names of all data sets, `datasets_path` the file that defines them; `model`,
    if not None, overrides the entries. Raises a ConfigError with file, key, value and allowed
    values.
    """
    entries: Mapping[str, Any] = load_validated(path, schema)
    names = sorted(datasets)
    for name, entry in entries.items():
        if name in names:
            raise ConfigError(
                f"{path}: got the name {name!r}; it must be a name that no data set has "
                f"(see {datasets_path})"
            )
        if entry["dataset"] not in names:
            raise ConfigError(
                f"{path}: {name}.dataset: got {entry['dataset']!r}; it must be one of "
                f"{', '.join(names)} (defined in {datasets_path})"
            )
    sets: dict[str, FeatureEntry] = {}
    for name, entry in entries.items():
        extracted = FeatureEntry(name=name, **entry)
        sets[name] = extracted if model is None else replace(extracted, model=model)
        if sets[name].weights not in (None, *names):
            raise ConfigError(
                f"{path}: {name}.model: got {sets[name].model!r}, whose weights are a data set of "
                f"that name, which {datasets_path} does not define"
            )
    return sets


def other_networks(entries: Iterable[FeatureEntry]) -> str:
    """Return in words which networks replace the paper's; empty if none does."""
    others = [entry for entry in entries if entry.published not in (None, entry.network)]
    ours, published = (
        " and ".join(dict.fromkeys(getattr(entry, name) for entry in others))
        for name in ("network", "published")
    )
    return f"features of {ours} in place of {published}" if others else ""
