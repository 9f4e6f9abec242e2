"""The same call gives the same bits in every process, whoever compiled the code it runs.

Run as a script, this file prints a digest of the results of each case that is named, in order.
"""

import ast
import functools
import hashlib
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

import privclust
from privclust.core.compiled import part

PACKAGE = Path(privclust.__file__).parent


def rows(n, d):
    """Return rows about three centers."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(n, d)) + 4.0 * rng.normal(size=(3, d))[np.arange(n) % 3]


def planes():
    """Return noisy rows of two planes in seven dimensions."""
    rng = np.random.default_rng(0)
    bases = rng.standard_normal((2, 2, 7))
    X = np.concatenate([rng.standard_normal((20, 2)) @ basis for basis in bases])
    return X + 0.01 * rng.standard_normal(X.shape)


def sketch_of_rows():
    from privclust.sketches import Sketch, draw_frequencies

    return Sketch.of(rows(400, 3), draw_frequencies(3, 60, variance=4.0, random_state=0))


def sketches():
    from privclust.sketches import FeatureSums

    X = rows(3000, 5)
    frequencies = np.random.default_rng(1).normal(size=(5, 300))
    masked = FeatureSums(frequencies, n_measurements=30, mask_seed=0).add(X)
    summed = [FeatureSums(frequencies).add(X.astype(t)) for t in (np.float32, np.float64)]
    return [sums.values for sums in (*summed, masked)]


def exact_moments():
    from privclust.core.second_moments import in_units
    from privclust.mixtures import MixtureParameters, exact_statistics
    from privclust.subspaces import moments_by_subspace

    X, rng = rows(3000, 5), np.random.default_rng(1)
    radius, means = float(np.linalg.norm(X, axis=1).max()), 0.3 * rng.normal(size=(3, 5))
    covariances = {"spherical": np.full(3, 0.1), "diag": np.full((3, 5), 0.1)}
    covariances["full"] = np.tile(0.1 * np.eye(5) + 0.02, (3, 1, 1))
    released = []
    for kind, of_kind in covariances.items():
        mixture = MixtureParameters(np.full(3, 1 / 3), means, of_kind, kind)
        statistics = exact_statistics(X, radius, mixture)
        released += [statistics.counts, statistics.sums, statistics.second_moments]
    bases = np.linalg.qr(rng.normal(size=(2, 5, 2)))[0]
    released.append(moments_by_subspace(in_units(X, radius), bases))
    return [np.asarray(total) for total in released]


def bingham():
    from privclust.bingham import sample_matrix_bingham

    found = []
    for d, q in ((50, 9), (10, 3)):
        A = 3.0 * np.random.default_rng(1).normal(size=(d, d))
        found.append(sample_matrix_bingham(A + A.T, q, np.random.default_rng(2), n_sweeps=30))
        found.append(sample_matrix_bingham(A + A.T, 1, np.random.default_rng(2), size=50))
    return found


def mixtures():
    from privclust.mixtures import AdaptiveGaussianMixture, GaussianMixtureEM

    found = []
    for d in (2, 5):
        model = GaussianMixtureEM(3, max_iter=30, tol=0, random_state=0).fit(rows(700, d))
        found += [model.parameters_.covariances, model.lower_bounds_]
        found.append(model.predict_proba(rows(50, d)))
        settings = {"epsilon": 5.0, "norm_bound": 50.0, "random_state": 0}
        found.append(AdaptiveGaussianMixture(2, **settings).fit(rows(700, d)).covariances_)
    return found


def mtsc():
    from privclust.segmentation.mtsc_solver import Schedule, solve

    X = planes().T
    schedule = Schedule(np.geomspace(1e-1, 1e-6, 30), 1.0, max_iter=40)
    found = solve(X / np.linalg.norm(X, axis=0), schedule, np.ones((40, 40)))
    return [found.coefficients]


def ssc():
    from privclust.segmentation import SSC

    return [SSC(n_clusters=2, random_state=0).fit(planes()).coefficients_]


def decoder():
    from privclust.decoding import decode

    found = decode(sketch_of_rows(), 3, random_state=0)
    return [found.centers, found.weights]


def clompr():
    from privclust.decoding import decode

    found = decode(sketch_of_rows(), 3, method="clompr", bounds=(-20.0, 20.0), random_state=0)
    return [found.centers, found.weights]


def grid_and_lloyd():
    from privclust.kmeans import EUGkM, LloydKMeans, TreeKMeans

    X = np.clip(rows(400, 2) / 30.0, -1.0, 1.0)
    private = EUGkM(2, epsilon=5.0, bounds=(-1.0, 1.0), n_init=3, random_state=0).fit(X)
    tree = TreeKMeans(2, epsilon=5.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
    found = [private.cluster_centers_, tree.cluster_centers_]
    return [*found, LloydKMeans(3, random_state=0).fit(X).cluster_centers_]


def gibbs():
    from privclust.subspaces import GibbsSubspaceClustering

    found = []
    for d, q in ((5, 3), (12, 4)):
        settings = {"epsilon": 50.0, "n_sweeps": 60, "norm_bound": 20.0, "random_state": 0}
        model = GibbsSubspaceClustering(3, q, **settings).fit(rows(200, d))
        found += [model.subspaces_, model.labels_]
    return found


def embeddings():
    from privclust.embedding import SMLQ, DPdSNE, PrivateMail

    X, y = np.abs(rows(90, 6)), np.arange(90) % 3
    placed = DPdSNE(epsilon=10.0, random_state=0).fit(X, 3.0 * X[:, :2]).transform(X[:40] + 0.1)
    corrected = PrivateMail(epsilon=1.0, random_state=0).fit(X, y)
    printed = PrivateMail(variant="paper", random_state=0).fit(X, y)
    return [
        SMLQ(random_state=0).fit(X, y).embedding_,
        corrected.release(X[:4]),
        printed.release(X[:4], y[:4]),
        placed,
    ]


CASES = {
    case.__name__: case
    for case in (
        bingham, mixtures, mtsc, ssc, decoder, clompr, grid_and_lloyd, gibbs, embeddings,
    )
}  # fmt: skip


RELEASED = {case.__name__: case for case in (sketches, exact_moments)}  # what noise is added to


def digest(case):
    """Return a digest of a case's results."""
    sha256 = hashlib.sha256()
    for array in case():
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()


# As docs/conf.py has it, so that the site is built with the same compiled loops.
OF_PAGES = {}
if platform.machine() == "x86_64":
    OF_PAGES = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}


def digests(names, cache=None, variables=None):
    """Return digests of the cases, run in this order by a new process with this cache."""
    environment = {
        **os.environ, "PYTHONWARNINGS": "ignore",
        "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        **({"NUMBA_CACHE_DIR": str(cache)} if cache else {}), **(variables or {}),
    }  # fmt: skip
    command = [sys.executable, __file__, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compile_for_pages(folder):
    """Fill a new cache in a folder with loops for the processor of pages; note what they gave."""
    found = digests(list(CASES), folder / "cache", OF_PAGES)
    (folder / "digests.json").write_text(json.dumps(found))


@pytest.mark.system
def test_bits_of_kernels_depend_on_no_cache_and_no_order(compiled_for_pages):
    """The first process compiled; this one loads, in another order."""
    names = list(CASES)
    first = json.loads((compiled_for_pages / "digests.json").read_text())
    assert set(first) == set(names)
    assert digests(names[::-1], compiled_for_pages / "cache", OF_PAGES) == first


@pytest.mark.system
def test_bits_of_kernels_for_this_processor_depend_on_no_order():
    """In the usual cache, which other processes filled."""
    names = list(CASES)
    assert digests(names) == digests(names[::-1])


@pytest.mark.system
def test_sums_have_the_same_bits_on_the_plainest_processor(tmp_path):
    """What noise is added to; what is decoded from it may end in other digits."""
    oldest = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    here = {name: digest(case) for name, case in RELEASED.items()}
    assert digests(list(RELEASED), tmp_path, oldest) == here


@functools.cache
def compiled_functions():
    """Return all compiled functions of the package by module and name, with their decorators."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            used = {ast.unparse(d).split("(")[0] for d in node.decorator_list}
            if used & {"kernel", "part", "njit", "numba.njit", "jit", "numba.jit"}:
                relative = file.relative_to(PACKAGE.parent).with_suffix("")
                found[".".join(relative.parts), node.name] = node, used
    return found


def test_every_loop_is_compiled_as_a_kernel_or_a_part():
    found = compiled_functions()
    assert len(found) > 50
    assert all(used <= {"kernel", "part"} for _, used in found.values())


def test_compiled_functions_call_no_kernels():
    found = compiled_functions()
    for (module, name), (node, _) in found.items():
        scope = vars(importlib.import_module(module))
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                called = scope.get(call.func.id)
                if isinstance(called, Dispatcher):
                    message = f"{module}.{name} calls {call.func.id}, which is not a part"
                    assert called.targetoptions["forceinline"], message


def test_reordered_sums_have_loops_that_store_nothing():
    """Else their last bits depend on where in memory the arrays are: a loop that stores numbers is
    vectorised only where it is found that its arrays do not overlap."""
    reordered = 0
    for (module, name), (node, _) in compiled_functions().items():
        flags = [k.value for d in node.decorator_list for k in d.keywords if k.arg == "fastmath"]
        if not {"True", "REORDER"} & {ast.unparse(value) for value in flags}:
            continue
        reordered += 1
        for loop in (n for n in ast.walk(node) if isinstance(n, ast.For | ast.While)):
            parts = [part for statement in loop.body for part in ast.walk(statement)]
            if any(isinstance(part, ast.For | ast.While) for part in parts):
                continue
            written = [t for part in parts if isinstance(part, ast.Assign) for t in part.targets]
            sums = [part.target for part in parts if isinstance(part, ast.AugAssign)]
            anew = {target.id for target in written if isinstance(target, ast.Name)}
            is_sum = any(isinstance(t, ast.Name) and t.id not in anew for t in sums)
            places = (part for part in parts if isinstance(part, ast.Subscript))
            is_store = any(isinstance(place.ctx, ast.Store) for place in places)
            assert not (is_sum and is_store), f"{module}.{name}, line {loop.lineno}"
    assert reordered > 20


def test_no_compiled_function_assigns_an_array_to_a_slice():
    """Numba compiles its error message with it, for two to ten seconds in each process."""
    for (module, name), (node, _) in compiled_functions().items():
        for assigned in ast.walk(node):
            if isinstance(assigned, ast.Assign) and not is_number(assigned.value):
                for target in assigned.targets:
                    slices = [part for part in ast.walk(target) if isinstance(part, ast.Slice)]
                    assert not slices, f"{module}.{name}: {ast.unparse(assigned)}: write a loop"


def is_number(value):
    """Whether an expression is of numbers alone, such as ``-np.inf``, or a tuple of such."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return names <= {"np"}


@part()
def _total(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


def test_a_part_keeps_its_own_flags_whoever_is_compiled_first():
    x = np.random.default_rng(0).normal(size=1000)

    @njit(fastmath=True)
    def fast_caller(x):
        return _total(x)

    assert fast_caller(x) == np.cumsum(x)[-1]  # in order: no sum is reordered
    (result,) = _total.overloads.values()
    assert "reassoc" not in str(result.library.get_llvm_str())


PROGRAM = """
import numpy as np
from caller import twice
print(twice(np.ones(3)))
"""


def test_a_kernel_is_renewed_when_its_parts_change(tmp_path):
    caller = "from privclust.core.compiled import kernel\nfrom constants import FACTOR\n"
    caller += "from called import total\n\n@kernel()\ndef twice(x):\n    return FACTOR * total(x)\n"
    called = "from privclust.core.compiled import part\n\n@part()\ndef total(x):\n"
    (tmp_path / "caller.py").write_text(caller)

    def result(constant, expression):
        (tmp_path / "constants.py").write_text(f"FACTOR = {constant}\n")
        (tmp_path / "called.py").write_text(f"{called}    return {expression}\n")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"  # so that edits within a second are seen
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    assert result(2.0, "x.sum()") == 6.0
    n_files = len(list((tmp_path / "cache").rglob("*.nbc")))
    assert result(2.0, "x.sum()") == 6.0
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == n_files == 1  # the kernel alone
    assert result(3.0, "x.sum()") == 9.0
    assert result(3.0, "x.sum() + 1.0") == 12.0


if __name__ == "__main__":
    results = {name: digest((CASES | RELEASED)[name]) for name in sys.argv[1:]}
    print(json.dumps(results))


def test_only_the_first_process_says_that_it_compiles(tmp_path):
    script = (
        "import numpy as np\n"
        "from privclust.core.lloyd import _lower_distances\n"
        "from privclust.privacy.bounds import row_norms\n"
        "_lower_distances(np.ones((3, 2)), np.ones(2), np.ones(3))\n"
        "row_norms(np.ones((3, 2)))\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        for _ in range(2)
    ]
    assert said[0].count("compiles its loops") == 1
    assert said[1] == ""
