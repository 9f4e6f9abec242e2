"""Use the package where only what estimators need is, and print what happened.

With ``--block`` the imports of all other packages fail, as if they were not there. What is printed
is JSON: the modules that were imported, and for each estimator and for what is saved either "done"
or the ImportError's text.
"""

import inspect
import json
import pkgutil
import re
import sys
import warnings
from importlib import import_module, metadata

CORE = ("numpy", "scipy", "scikit-learn", "numba", "lazy-loader")
REPORT = re.compile(r"privclust\.(report\b|command\._clustering$)")  # they draw


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(*names):
    """Distributions, and all that they need."""
    found, pending = set(), list(names)
    while pending:
        name = normal(pending.pop())
        if name not in found:
            found.add(name)
            lines = [line for line in metadata.requires(name) or [] if "extra ==" not in line]
            pending += [re.match(r"[\w.-]+", line).group() for line in lines]
    return found


class Without:
    """A finder that does not find modules of other distributions."""

    def __init__(self, finder, allowed):
        self.finder = finder
        self.hidden = {
            module
            for module, names in metadata.packages_distributions().items()
            if not allowed & {normal(name) for name in names}
        }

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            return None
        return self.finder.find_spec(name, path, target)


def public_modules():
    import privclust

    names = [i.name for i in pkgutil.walk_packages(privclust.__path__, "privclust.")]
    return {name: import_module(name) for name in names if not REPORT.match(name)}


def estimators(modules):
    """Return each public estimator once, with parameters for rows of norm 1 at most."""
    from sklearn.base import BaseEstimator

    names = ((module, name) for module in modules for name in getattr(module, "__all__", ()))
    public = [getattr(module, name) for module, name in names]
    classes = [c for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)]
    by_name = {c.__name__: c for c in classes if hasattr(c, "fit")}
    given = {"random_state": 0}
    required = {"base": by_name["KPlanes"](2, 1), "bounds": (-1.0, 1.0), "columns": {"x": (0, 1)}}
    for name, cls in sorted(by_name.items()):
        accepted = inspect.signature(cls).parameters
        needed = {key for key in accepted if accepted[key].default is inspect.Parameter.empty}
        values = {key: value for key, value in given.items() if key in accepted}
        yield name, cls(**values, **{key: required[key] for key in needed})


def attempt(function, *args):
    try:
        function(*args)
    except ImportError as error:
        return str(error)
    return "done"


def main():
    if "--block" in sys.argv:
        allowed = closure(*CORE) | {"privclust"}
        sys.meta_path[:] = [Without(finder, allowed) for finder in sys.meta_path]
    modules = public_modules()

    import numpy as np

    from privclust.sketches import Sketch

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    X /= np.linalg.norm(X, axis=1).max()
    results = {}
    for name, estimator in estimators(modules.values()):
        rows = {"x": X[:, 0]} if name == "TableEncoder" else X
        results[name] = attempt(estimator.fit, rows, y)
        if results[name] == "done" and hasattr(estimator, "predict"):
            assert len(estimator.predict(X)) == 60
    results["Sketch.save"] = attempt(Sketch.of(X, rng.standard_normal((4, 20))).save, "sketch.h5")
    results["random_state=None"] = attempt(modules["privclust.privacy"].noise_source, None)
    print(json.dumps({"modules": sorted(modules), "results": results}))


if __name__ == "__main__":
    main()
