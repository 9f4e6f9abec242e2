import numpy as np
import pytest
from scipy import integrate, special, stats

from privclust.bingham import full_basis, kernels, sample_matrix_bingham
from privclust.core.compiled import kernel

CONCENTRATIONS = [1e-2, 1.0, 1e2, 1e4, 1e6]

# --- parts as kernels, which later processes load from the cache ---------------------------------


@kernel()
def frame_workspace(d):
    return kernels.frame_workspace(d)


@kernel()
def multiply_symmetric(B, K, sign, out):
    kernels.multiply_symmetric(B, K, sign, out)


@kernel()
def prepare(G, p, kappa, L, R):
    return kernels.prepare(G, p, kappa, L, R)


@kernel()
def resample_frame(B, K, sign, r, rng, kappas, space):
    kernels.resample_frame(B, K, sign, r, rng, kappas, space)


def sample_vectors(A, rng, size):
    """Independent vectors, (size, d)."""
    return sample_matrix_bingham(A, 1, rng, size=size)[:, :, 0]


def rotation(d, seed=0):
    return sample_matrix_bingham(np.zeros((d, d)), d, np.random.default_rng(seed))


def symmetric(d, seed=0):
    A = np.random.default_rng(seed).standard_normal((d, d))
    return A + A.T


def cdf_of(log_density, low, high, width):
    """Distribution function on [low, high] by quadrature, for a bump of some width at its mode."""
    coarse = np.linspace(low, high, 100_001)
    mode = coarse[np.argmax(log_density(coarse))]
    fine = np.clip(mode + width * np.linspace(-12, 12, 100_001), low, high)
    grid = np.unique(np.concatenate([coarse, fine]))
    logs = log_density(grid)
    density = np.exp(logs - logs.max())
    total = np.concatenate([[0.0], integrate.cumulative_trapezoid(density, grid)])
    return lambda x: np.interp(x, grid, total / total[-1])


# --- vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_vectors_of_the_plane_are_von_mises(concentration):
    """Twice the angle is von Mises; KS test and Bessel functions, false-alarm rate 1e-4 each."""
    A = concentration * np.diag([0.7, -1.3])
    Q = rotation(2)
    n, rho = 20_000, concentration
    x = sample_vectors(Q @ A @ Q.T, np.random.default_rng(1), n) @ Q
    twice = 2 * np.arctan2(x[:, 1], x[:, 0])
    twice = (twice + np.pi) % (2 * np.pi) - np.pi
    cdf = cdf_of(lambda t: rho * np.cos(t), -np.pi, np.pi, rho**-0.5)
    assert stats.kstest(twice, cdf).pvalue > 1e-4
    mean = special.ive(1, rho) / special.ive(0, rho)
    variance = 0.5 * (1 + special.ive(2, rho) / special.ive(0, rho)) - mean**2
    # (cos 2t - 1 has relative skewness 2.8 at high concentration: nothing at n = 20,000)
    assert abs(np.cos(twice).mean() - mean) < 4.0 * np.sqrt(variance / n)
    assert abs(np.sign(x[:, 0]).mean()) < 4.0 / np.sqrt(n)


def angle_to_last(eigenvalues):
    """Distribution function of the angle to the third axis for a vector Bingham of that matrix."""
    a, b, c = eigenvalues

    def log_density(t):
        rest = np.sin(t) ** 2
        rho = 0.5 * (a - b) * rest
        bessel = np.log(special.ive(0, rho)) + np.abs(rho)
        with np.errstate(divide="ignore"):
            return c * np.cos(t) ** 2 + 0.5 * (a + b) * rest + bessel + np.log(np.sin(t))

    return cdf_of(log_density, 0.0, 0.5 * np.pi, abs(c - max(a, b)) ** -0.5)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("q", [1, 2])
def test_three_dimensions_against_quadrature(q, concentration):
    """One column, or two, whose normal is a vector Bingham of -A; false-alarm rate 1e-4 each."""
    Q = rotation(3, seed=2)
    eigenvalues = concentration * np.array([0.3, -1.0, 1.0])
    A = Q @ np.diag(eigenvalues) @ Q.T
    U = sample_matrix_bingham(A, q, np.random.default_rng(3), size=10_000)
    lines = U[:, :, 0] if q == 1 else np.cross(U[:, :, 0], U[:, :, 1])
    coordinates = np.abs(lines @ Q)
    angles = np.arctan2(np.sqrt((coordinates**2) @ (1 - np.eye(3))), coordinates)
    sign = 1 if q == 1 else -1
    for last in range(3):
        others = [i for i in range(3) if i != last]
        cdf = angle_to_last(sign * eigenvalues[[*others, last]])
        assert stats.kstest(angles[:, last], cdf).pvalue > 1e-4


@pytest.mark.parametrize("d", [2, 5, 40])
def test_zero_matrix_is_uniform(d):
    """A squared coordinate is Beta(1/2, (d - 1)/2); false-alarm rate 1e-4."""
    x = sample_vectors(np.zeros((d, d)), np.random.default_rng(d), 5000)
    assert stats.kstest(x[:, 0] ** 2, stats.beta(0.5, 0.5 * (d - 1)).cdf).pvalue > 1e-4


@pytest.mark.parametrize("guess", [-np.inf, 1.0, 1e6])
@pytest.mark.parametrize("d", [2, 4, 10, 43])
def test_proposals_fit_at_every_concentration(d, guess):
    """tr(Omega^-1) is near 2: deterministic, with ties, low rank, any sign and any basis."""
    rng = np.random.default_rng(0)
    Q = rotation(d)
    L, R = np.empty((d, d)), np.empty((d, d))
    spectra = [np.zeros(d), np.ones(d), np.eye(d)[0], -np.eye(d)[0], np.arange(d) // 2]
    spectra += [rng.standard_normal(d), np.geomspace(1e-8, 1, d), -np.geomspace(1e-8, 1, d)]
    for spectrum in spectra:
        for concentration in 10.0 ** np.arange(-2, 9):
            G = concentration * (Q * spectrum) @ Q.T
            kappa = prepare(G, d, guess, L, R)
            trace = (1 / (np.linalg.eigvalsh(G) + kappa)).sum()
            assert 1.39 < trace < 2.61, (spectrum, concentration)
            inverse = np.tril(R).T @ np.tril(R)
            assert np.trace(inverse) == pytest.approx(trace, rel=1e-3)
            assert np.abs((G + kappa * np.eye(d)) @ inverse - np.eye(d)).max() <= 1e-4


@pytest.mark.parametrize("d", [2, 4, 10, 42])
def test_moments_at_high_concentration(d):
    """What is lost to one largest eigenvalue is Gamma((d - 1)/2): mean and variance.

    Each within 4.5 errors: false-alarm rate below 1e-4.
    """
    n, c, shape = 40_000 if d < 42 else 10_000, 1e6, 0.5 * (d - 1)
    gaps = np.linspace(1.0, 3.0, d) * (np.arange(d) > 0)
    Q = rotation(d)
    x = sample_vectors(-c * (Q * gaps) @ Q.T, np.random.default_rng(0), n) @ Q
    lost = c * (x**2) @ gaps
    assert abs(lost.mean() - shape) < 4.5 * np.sqrt(shape / n)
    assert abs(lost.var() / shape - 1) < 4.5 * np.sqrt((2 + 6 / shape) / n)


@pytest.mark.parametrize("spectrum", [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, -1]])
def test_ties_and_low_rank_at_high_concentration(spectrum):
    """What is lost to the largest eigenvalue is Gamma((d - m)/2), m its multiplicity; rate 1e-4."""
    c, top = 1e8, spectrum.count(1)
    Q = rotation(5)
    x = sample_vectors(c * (Q * spectrum) @ Q.T, np.random.default_rng(0), 5000) @ Q
    lost = c * ((1.0 - np.array(spectrum)) * x**2).sum(axis=1)
    assert stats.kstest(lost, stats.gamma(0.5 * (5 - top)).cdf).pvalue > 1e-4
    np.testing.assert_allclose((x**2).sum(axis=1), 1.0, rtol=1e-12)
    inside = (x[:, 0] ** 2) / (x[:, :top] ** 2).sum(axis=1)
    if top > 1:
        assert stats.kstest(inside, stats.beta(0.5, 0.5 * (top - 1)).cdf).pvalue > 1e-4


# --- frames ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [3, 50, 300])
def test_a_row_of_a_product_does_not_depend_on_others(d):
    """A row by itself has the same bits; all are within the bound of sums of d products."""
    rng = np.random.default_rng(d)
    B, K = rotation(d), symmetric(d)
    whole, row = np.empty((d, d)), np.empty((1, d))
    multiply_symmetric(B, K, -1.0, whole)
    for i in rng.permutation(d)[:20]:
        multiply_symmetric(B[i : i + 1], K, -1.0, row)
        np.testing.assert_array_equal(row[0], whole[i])
    bound = d * 2.0**-52 * (np.abs(B) @ np.abs(K))
    assert (np.abs(whole + B @ K) <= bound).all()


def summaries(P, A):
    """Functions of projections, (n, n_functions)."""
    energy = np.einsum("nij,ij->n", P, A)
    entries = np.stack([P[:, 0, 0], P[:, 4, 4], P[:, 0, 1], P[:, 2, 3]], axis=1)
    return np.column_stack([energy, energy**2, entries, entries[:, 0] * entries[:, 1]])


def by_importance(A, q, n, seed):
    """Means and standard errors from weighted Haar draws (self-normalised)."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, len(A), q)))[0]
    P = U @ U.transpose(0, 2, 1)
    values = summaries(P, A)
    weights = np.exp(values[:, 0] - values[:, 0].max())
    weights /= weights.sum()
    means = weights @ values
    errors = np.sqrt((weights[:, None] ** 2 * (values - means) ** 2).sum(axis=0))
    return means, errors


def distance_in_errors(U, A, reference):
    """How many standard errors means along a chain are off; errors by batches of the chain."""
    values = summaries(U @ U.transpose(0, 2, 1), A)
    batches = values.reshape(40, -1, values.shape[1]).mean(axis=1)
    means, errors = reference
    return np.abs(values.mean(axis=0) - means) / np.hypot(
        errors, batches.std(axis=0, ddof=1) / np.sqrt(40)
    )


REFERENCE_MATRIX = 1.2 * symmetric(5, seed=1)


@pytest.mark.parametrize("q", [2, 3])
def test_five_dimensions_against_importance_sampling(q):
    """Seven means, each within 5.5 errors (of 40 batches): false-alarm rate below 1e-4."""
    reference = by_importance(REFERENCE_MATRIX, q, 200_000, seed=0)
    U = sample_matrix_bingham(
        REFERENCE_MATRIX, q, np.random.default_rng(1), n_sweeps=1, size=20_000
    )
    assert distance_in_errors(U, REFERENCE_MATRIX, reference).max() < 5.5


@pytest.mark.parametrize("guesses", [(-1e3, 1e3), (-8.0, 30.0), (3.0, 3.5)])
def test_guesses_of_kappa_leave_the_law_as_it_is(guesses):
    """Too small, too large, fair: seven means as above, and it is the last one that is used."""
    reference = by_importance(REFERENCE_MATRIX, 3, 200_000, seed=0)
    rng, kappas, space = np.random.default_rng(2), np.full(5, -np.inf), frame_workspace(5)
    B = full_basis(np.eye(5)[:, :3])
    found = np.empty((20_000, 5, 3))
    for i, U in enumerate(found):
        kappas[:2] = guesses[i % 2], guesses[i // 2 % 2]
        resample_frame(B, REFERENCE_MATRIX, 1.0, 2, rng, kappas, space)
        U[:] = B[2:].T
    assert distance_in_errors(found, REFERENCE_MATRIX, reference).max() < 5.5
    assert np.isfinite(kappas[:2]).all()
    assert np.isneginf(kappas[2:]).all()


def test_rotating_the_frame_to_eigenvectors_breaks_invariance():
    """The trap that the module's description warns of, seen by the test above."""
    reference = by_importance(REFERENCE_MATRIX, 3, 200_000, seed=0)
    rng = np.random.default_rng(1)
    kappas, space = np.full(5, -np.inf), frame_workspace(5)
    distances = {}
    for is_rotated in (False, True):
        B = full_basis(np.eye(5)[:, :3])
        found = np.empty((8000, 5, 3))
        for U in found:
            resample_frame(B, REFERENCE_MATRIX, 1.0, 2, rng, kappas, space)
            if is_rotated:
                frame = B[:2].copy()
                vectors = np.linalg.eigh(frame @ REFERENCE_MATRIX @ frame.T)[1]
                B[:2] = vectors.T @ frame
            U[:] = B[2:].T
        distances[is_rotated] = distance_in_errors(found, REFERENCE_MATRIX, reference).max()
    assert distances[False] < 5.5
    assert distances[True] > 8.0


@pytest.mark.parametrize("concentration", [1e5, 1e6, 1e8])
@pytest.mark.parametrize(("d", "q", "size"), [(5, 3, 2000), (10, 3, 1000), (50, 9, 150)])
def test_large_concentration_limit(d, q, size, concentration):
    """Laplace: sum of (a_i - b_j) z_ij^2 is Gamma(q (d - q) / 2); false-alarm rate 1e-4 each.

    The limit is off by about the number of dimensions over the concentration.
    """
    spectrum = np.concatenate([np.linspace(1.0, 2.0, q), np.linspace(0.0, 0.5, d - q)])
    Q = rotation(d)
    A = concentration * (Q * spectrum) @ Q.T
    U = Q.T @ sample_matrix_bingham(A, q, np.random.default_rng(0), n_sweeps=3, size=size)
    inside = (U**2).sum(axis=2)  # diagonal of the projection
    gaps = np.where(np.arange(d) < q, 1.0 - inside, inside)
    lost = concentration * np.abs(gaps) @ np.where(np.arange(d) < q, spectrum, -spectrum)
    assert stats.kstest(lost, stats.gamma(0.5 * q * (d - q)).cdf).pvalue > 1e-4
    tilt = np.einsum("nq,nq->n", U[:, 0], U[:, -1])  # P_ij ~ N(0, 1 / (2 (a_i - b_j)))
    scale = np.sqrt(2 * concentration * (spectrum[0] - spectrum[-1]))
    assert stats.kstest(scale * tilt, stats.norm.cdf).pvalue > 1e-4


def test_frame_is_uniform_given_its_subspace():
    """Neither signs nor labels of columns are kept: U'e_1 has uniform direction; rate 1e-4 each."""
    A = 50.0 * np.diag([3.0, 2.0, 1.0, 0.0, 0.0])
    U = sample_matrix_bingham(A, 3, np.random.default_rng(0), n_sweeps=1, size=5000)
    first = U[:, 0] / np.linalg.norm(U[:, 0], axis=1, keepdims=True)
    for c in range(3):  # uniform on the sphere of three dimensions: coordinates are uniform
        assert stats.kstest(first[:, c], stats.uniform(-1, 2).cdf).pvalue > 1e-4
    lag = np.abs((first[1:] * first[:-1]).sum(axis=1).mean())
    assert lag < 4.0 / np.sqrt(3 * 5000)


@pytest.mark.parametrize(("d", "q"), [(4, 1), (4, 2), (4, 3), (4, 4)])
def test_multiples_of_the_identity_do_not_matter(d, q):
    A = symmetric(d)
    plain, shifted = (
        sample_matrix_bingham(A + c * np.eye(d), q, np.random.default_rng(0), size=20)
        for c in (0.0, 37.0)
    )
    np.testing.assert_allclose(plain, shifted, rtol=0, atol=1e-8)


def test_rotating_the_matrix_rotates_the_distribution():
    """Two-sample KS tests of chains thinned to independence; false-alarm rate 1e-4 each."""
    A, Q = 3 * symmetric(5), rotation(5)
    U = sample_matrix_bingham(A, 2, np.random.default_rng(0), n_sweeps=5, size=3000)
    V = Q.T @ sample_matrix_bingham(Q @ A @ Q.T, 2, np.random.default_rng(1), 5, size=3000)
    for i in range(5):
        inside = [(W[:, i] ** 2).sum(axis=1) for W in (U, V)]
        assert stats.ks_2samp(*inside).pvalue > 1e-4


def test_whole_space_is_haar():
    """Entries of O(3) are uniform on [-1, 1], half have determinant 1; false-alarm rate 1e-4."""
    U = sample_matrix_bingham(symmetric(3), 3, np.random.default_rng(0), size=4000)
    assert stats.kstest(U[:, 1, 2], stats.uniform(-1, 2).cdf).pvalue > 1e-4
    assert abs(np.linalg.det(U).mean()) < 4.0 / np.sqrt(4000)


def test_one_dimension_is_a_sign():
    draw = sample_vectors([[5.0]], np.random.default_rng(0), 1000)
    assert set(draw.ravel().tolist()) == {-1.0, 1.0}
    assert abs(draw.mean()) < 4.0 / np.sqrt(1000)


# --- interface -----------------------------------------------------------------------------------


def test_shapes_and_seeds():
    A = symmetric(4)
    assert sample_matrix_bingham(A, 2, 0, size=0).shape == (0, 4, 2)
    assert sample_matrix_bingham(A, 2, np.random.default_rng(0)).shape == (4, 2)
    first, second = (sample_matrix_bingham(A, 2, 7, size=3) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(
        first.transpose(0, 2, 1) @ first, np.tile(np.eye(2), (3, 1, 1)), atol=1e-13
    )


def test_long_chains_stay_orthonormal():
    B = full_basis(np.eye(10)[:, :3])
    rng, kappas, space = np.random.default_rng(0), np.full(10, -np.inf), frame_workspace(10)
    for _ in range(2000):
        resample_frame(B, 1e3 * symmetric(10), 1.0, 7, rng, kappas, space)
    np.testing.assert_allclose(B @ B.T, np.eye(10), atol=1e-11)


def test_a_start_is_taken():
    """At a concentration where one sweep cannot leave the start's place by chance."""
    A = 1e6 * np.diag([1.0, 1.0, 0.0, 0.0])
    start = np.eye(4)[:, 2:]
    found = sample_matrix_bingham(A, 2, 0, n_sweeps=50, init=start)
    assert np.abs(found[2:]).max() < 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_matrix_bingham(np.zeros((2, 3)), 1, 0), "shape"),
        (lambda: sample_matrix_bingham("x", 1, 0), "shape"),
        (lambda: sample_matrix_bingham(np.zeros((0, 0)), 1, 0), "shape"),
        (lambda: sample_matrix_bingham([[1.0, 2.0], [0.0, 1.0]], 1, 0), "symmetric"),
        (lambda: sample_matrix_bingham([[np.nan, 0.0], [0.0, 1.0]], 1, 0), "finite"),
        (lambda: sample_matrix_bingham([[1e13, 0.0], [0.0, 1.0]], 1, 0), "magnitude"),
        (lambda: sample_matrix_bingham(np.eye(2), 1, "x"), "random_state"),
        (lambda: sample_matrix_bingham(np.eye(2), 1, 0, size=-1), "size"),
        (lambda: sample_matrix_bingham(np.eye(2), 0, 0), "q must be"),
        (lambda: sample_matrix_bingham(np.eye(2), 3, 0), "q=3"),
        (lambda: sample_matrix_bingham(np.eye(3), 2, 0, n_sweeps=0), "n_sweeps"),
        (lambda: sample_matrix_bingham(np.eye(3), 2, 0, size=1.5), "size"),
        (lambda: sample_matrix_bingham(np.eye(3), 2, 0, init=np.ones((3, 2))), "orthonormal"),
        (lambda: sample_matrix_bingham(np.eye(3), 2, 0, init=np.eye(3)), "init must have shape"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
