"""Base class of fitted mixtures of Gaussians."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from privclust.core import hdf5
from privclust.core.hints import RandomState
from privclust.core.printable import excerpt
from privclust.core.validation import as_generator, check_integer
from privclust.mixtures import _parameters, _statistics
from privclust.mixtures._parameters import MixtureParameters
from privclust.privacy import Guarantee
from privclust.privacy.estimator import validated

_KIND = "mixture"
_ARRAYS = ("weights", "means", "covariances")
_FITTED_ARRAY = "fitted/"  # prefix in files of fitted attributes that are arrays
_CHUNK = 4096  # points per block of responsibilities in memory


class FittedMixture(DensityMixin, BaseEstimator):
    """Densities, labels, samples and files of an estimator that fits a mixture of Gaussians.

    A subclass sets `parameters_` in ``fit`` and lists other fitted attributes for files in
    `_FITTED`: numbers, booleans, text, None, arrays of numbers, and attributes that `_AS_JSON`
    converts to these and back. Samples and densities of a private mixture are post-processing and
    have its guarantee.
    """

    parameters_: MixtureParameters

    _FITTED: tuple[str, ...] = ()
    _AS_JSON: ClassVar[dict[str, tuple[Callable, Callable]]] = {
        "guarantee_": (Guarantee.as_dict, Guarantee.from_dict)
    }

    @property
    def weights_(self) -> np.ndarray:
        """π, shape (n_components,)."""
        return self.parameters_.weights

    @property
    def means_(self) -> np.ndarray:
        """μ, shape (n_components, n_features)."""
        return self.parameters_.means

    @property
    def covariances_(self) -> np.ndarray:
        """Covariances; their shape depends on the type, see `MixtureParameters`."""
        return self.parameters_.covariances

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the log density of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p(x), at least about -5e299 however far x is.
        """
        return _statistics.log_density(self._validated(X), self.parameters_)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density of samples; parameters as for `score_samples`.

        The mean is exact: neither this score nor a choice that depends on it is private.
        """
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the responsibilities, shape (n_samples, n_components).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        """
        return _statistics.responsibilities(self._validated(X), self.parameters_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the component of the largest responsibility for each sample, (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        """
        X = self._validated(X)
        labels = np.empty(X.shape[0], dtype=np.intp)
        for start in range(0, X.shape[0], _CHUNK):
            chunk = slice(start, start + _CHUNK)
            gamma = _statistics.responsibilities(X[chunk], self.parameters_)
            labels[chunk] = gamma.argmax(axis=1)
        return labels

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples from the mixture.

        Parameters
        ----------
        n_samples : int, default 1
            At least 1.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
            Source of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent samples.
        y : ndarray of shape (n_samples,)
            Component of each sample.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, minimum=1)
        return _parameters.sample(self.parameters_, n_samples, as_generator(random_state))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted mixture to an HDF5 file.

        The file holds the mixture, the estimator's parameters (a generator given as `random_state`
        becomes None) and the fitted attributes, but no samples.

        Parameters
        ----------
        path : path-like
            Written under a temporary name and then renamed.
        """
        check_is_fitted(self)
        arrays = {name: getattr(self.parameters_, name) for name in _ARRAYS}
        facts = {"n_features_in_": self.n_features_in_}
        for name in self._FITTED:
            value = getattr(self, name)
            if name in self._AS_JSON:
                value = self._AS_JSON[name][0](value)
            if isinstance(value, np.ndarray):
                arrays[_FITTED_ARRAY + name] = value
            else:
                facts[name] = value
        if hasattr(self, "feature_names_in_"):
            facts["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        parameters = {
            "estimator": type(self).__name__,
            "covariance_type": self.parameters_.covariance_type,
            "init": {key: _plain(key, value) for key, value in self.get_params(False).items()},
            "fitted": facts,
        }
        hdf5.write(path, _KIND, arrays, parameters)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`; the result predicts and samples the same bytes.

        Parameters
        ----------
        path : path-like
            File of an estimator of this class.

        Returns
        -------
        estimator of this class, fitted

        Raises
        ------
        privclust.core.hdf5.FileError
            If the file is missing, damaged, malformed, or of another class.
        """
        names = (*_ARRAYS, *(_FITTED_ARRAY + name for name in cls._FITTED))
        content = hdf5.read(path, _KIND, {"estimator": cls.__name__}, names=names)
        try:
            return cls._restored(content.parameters, content.arrays)
        except hdf5.MALFORMED as error:
            reason = excerpt(f"no {error}" if isinstance(error, KeyError) else error)
            raise hdf5.FileError(f"{path}: holds no whole mixture ({reason})") from None

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the estimator of a file, with only the attributes that the class lists."""
        estimator = cls(**parameters["init"])
        facts = dict(parameters["fitted"])
        kept = {name.removeprefix(_FITTED_ARRAY): name for name in arrays if name not in _ARRAYS}
        if set(facts) & set(kept):
            raise ValueError("an attribute is there twice")
        facts |= {name: arrays[key] for name, key in kept.items()}
        estimator.n_features_in_ = n_features = facts.pop("n_features_in_")
        if "feature_names_in_" in facts:
            estimator.feature_names_in_ = _names(facts.pop("feature_names_in_"), n_features)
        if set(facts) != set(cls._FITTED):
            raise ValueError(f"its attributes are not {', '.join(cls._FITTED)}")
        for name, value in facts.items():
            if name in cls._AS_JSON:
                value = cls._AS_JSON[name][1](value)
            elif isinstance(value, dict | list):
                raise ValueError(f"{name} is neither a number nor text nor an array")
            setattr(estimator, name, value)
        mixture = {name: arrays[name] for name in _ARRAYS}
        kind = parameters["covariance_type"]
        estimator.parameters_ = MixtureParameters(**mixture, covariance_type=kind)
        check_integer("n_features_in_", n_features, minimum=1)
        if n_features != estimator.parameters_.n_features:
            raise ValueError(f"n_features_in_ is not that of the means, got {n_features}")
        return estimator

    def _validated(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validated(self, X, dtype=np.float64, reset=False)


def _names(names: Any, n_features: int) -> np.ndarray:
    """Return the names of features in the form of scikit-learn."""
    is_text = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_text or len(names) != n_features:
        raise ValueError("feature_names_in_ must be a name for each feature")
    return np.array(names, dtype=object)


def _plain(name, value):
    if name == "random_state" and not (value is None or isinstance(value, Integral)):
        return None
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value
