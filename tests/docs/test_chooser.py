"""The chooser in a real Chromium says what the committed tables say, found here by pandas."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.system

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
support = pytest.importorskip("selenium.webdriver.support.ui")
Keys = webdriver.Keys
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
RESULTS = Path(__file__).parents[2] / "docs" / "results"

PURE = {"eugkm", "dplloyd_corrected", "dplloyd_separated_corrected", "label_response"}
PURE |= {f"ckm_l1_m{m}{decoder}" for m in (5, 10, 20) for decoder in ("", "_gaussian")}
KMEANS = {"compressive", "compressive_clompr", "dplloyd_uniform", "dplloyd_separated", "eugkm"}
KMEANS |= {"mixture_kmeans", "adaptive", "lloyd"}
PLAIN = {"lloyd", "em", "kplanes", "kplanes_ssc", "lrr", "tsc", "ssc", "lsr", "cass", "sbl", "mtsc"}
PLAIN |= {"features", "tsne", "smlq"}


def table(name, value, methods=None, **settings):
    """Return method, label, value and settings of a table's rows, one line each."""
    rows = pd.read_csv(RESULTS / f"{name}.csv")
    metric, _, column = value.rpartition(".")
    if metric:
        rows = rows[rows["metric"] == metric]
    rows = rows.assign(value=rows[column])
    for setting, what in settings.items():
        rows[setting] = rows[what] if isinstance(what, str) else what
    if methods:
        rows = rows[rows["method"].isin(methods)]
    rows["group"] = name
    for extra in ("experiment", "shape", "dimension"):
        if extra in rows:
            rows["group"] += " " + rows[extra].astype(object).fillna("").astype(str)
    return rows[["group", "method", "label", "value", "N", "d", "k", "epsilon"]].dropna()


def beyond(experiment, **settings):
    """Return the rows of one experiment of ckm_beyond."""
    rows = table("ckm/ckm_beyond", "relative_sse.median", KMEANS, epsilon="epsilon", **settings)
    return rows[rows["group"].str.contains(f" {experiment} ")]


def measured():
    """Return what each task has, with settings that are written down here once more."""
    swept = {"epsilon": "epsilon"}
    sizes = {"k": "n_clusters", "d": "n_features", "N": 100_000, **swept}
    fig3 = {*(PURE - {"dplloyd_corrected"}), "normal_l1_m10", "lloyd"}
    gowalla = {"cdplap_pld", "cdpgau_pld", "dplloyd_pld", "dplloyd_corrected"}
    densities = {"adaptive", "joint", "zcdp", "em"}
    subspaces = {"sulq_10", "sulq_50", "sulq_10_mod", "sulq_50_mod", "sa_ssc_corrected"}
    subspaces |= {"sulq_restarts", "kplanes", "kplanes_ssc", "lrr", "tsc", "ssc"}
    subspaces |= {"moments", "sulq_moments"}
    frontier = {
        "moments",
        "sulq_10",
        "sulq_50",
        "sulq_averaged",
        "sulq_restarts",
        "sa_ssc_corrected",
    }
    frontier |= {"sulq_restarts_averaged", "sulq_10_classical", "sulq_10_mod"}
    relative = "relative_distance.mean"
    fig2 = table("dpsc/dpsc_fig2", relative, subspaces, N=0, d=0, k=0, **swept)
    starts = table("dpsc/dpsc_starts", relative, subspaces, N=0, d=0, k=0, **swept)
    of_rows = {"N": "n_samples", "d": "n_features"}
    shapes = {
        "dpsc_d5": (5000, 5, 3),
        "dpsc_d10": (1000, 10, 3),
        "dpsc_yale": (320, 50, 5),
        "dpsc_starts": (1000, 10, 3),
        "dpsc_starts_yale": (320, 50, 5),
    }
    by_shape = pd.concat([fig2, starts])
    of_shape = [shapes[group.split()[-1]] for group in by_shape["group"]]
    by_shape[["N", "d", "k"]] = np.array(of_shape)
    motions = pd.read_csv(RESULTS / "mtsc/mtsc_fig1.csv")
    motions = motions[motions["metric"] == "segmentation_error"].assign(epsilon=1.0)
    motions["N"] = motions["n_per_subspace"] * motions["n_subspaces"]
    motions["group"] = motions["dimension"].astype(str)
    names = {"ambient_dimension": "d", "n_subspaces": "k", "mean": "value"}
    motions = motions.rename(columns=names)[fig2.columns].drop_duplicates()
    return {
        "kmeans": pd.concat(
            [
                beyond("ckm_beyond", N=100_000, d=10, k=10),
                beyond("ckm_s1", N=5_000, d=2, k=15),
                beyond("ckm_gowalla", N=100_000, d=2, k=5),
                beyond("ckm_lifesci", N=26_733, d=10, k=3),
                table("ckm/ckm_goal", "relative_sse_true.median", N=100_000, d=10, k=10, **swept),
                table("ckm/ckm_sizes", "relative_sse_true.median", **sizes),
                table("ckm/ckm_fig3", "relative_sse.median", fig3, N=10**7, d=10, k=10, **swept),
                table("dpem/dpem_fig3", "nicv_q50", gowalla, N=12_563, d=2, k=5, **swept),
            ]
        ),
        "mixture": pd.concat(
            [
                table(
                    "dpem/dpem_fig2",
                    "loss",
                    {*densities, "dp_corrected"},
                    N="n_samples",
                    d=2,
                    k=3,
                    epsilon=0.9,
                ),
                table("dpem/dpem_fig4", "loss", densities, N=24_060, d=10, k=3, **swept),
            ]
        ),
        "subspaces": pd.concat(
            [
                by_shape,
                table("dpsc/dpsc_frontier", relative, frontier, k=3, **of_rows, **swept),
                table("dpsc/dpsc_scaling", "mean", subspaces, k=3, **of_rows, **swept),
            ]
        ),
        "segmentation": motions,
        "retrieval": cifar(swept),
    }


def cifar(swept):
    """Return the rows of CIFAR-100 whose query is private as a whole, and without privacy."""
    methods = {
        "corrected",
        "corrected_embedding",
        "pca_corrected",
        "projection_corrected",
        "dsne_corrected",
    }
    methods |= {"label_response", "features", "tsne", "smlq"}
    settings = {"N": 10_000, "d": 1280, "k": 100}
    rows = table("privatemail/privatemail_fig6", "recall_8.mean", methods, **settings, **swept)
    return rows[rows["group"].str.contains("cifar100")]


def nearest(task, promise, settings):
    """Return labels and values of the best of each nearest group, in order."""
    rows = measured()[task]
    plain = rows["method"].isin(PLAIN)
    pure = rows["method"].isin(PURE)
    rows = rows[plain if promise == "none" else ~plain & (pure | (promise != "pure"))]
    axes = ["N", "d", "k"] if promise == "none" else ["N", "d", "k", "epsilon"]
    rows = rows.drop_duplicates(["group", "method", *axes])
    gaps = np.log10(rows[axes].astype(float)) - np.log10(settings[: len(axes)])
    rows = rows.assign(gap=np.sqrt((gaps**2).sum(axis=1)))
    rows = rows[rows["gap"] <= rows["gap"].min() + 1e-9]
    best = rows.sort_values("value", ascending=task != "retrieval", kind="stable")
    best = best.drop_duplicates(["group", *axes])
    return sorted(zip(best["label"], best["value"].astype(float), strict=True))


@pytest.fixture(scope="module")
def browser(site):
    """A Chromium without a window, at the chooser."""
    if not CHROMIUM or not DRIVER:
        pytest.skip("no Chromium and its driver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.get((site / "choose.html").as_uri())
    yield driver
    driver.quit()


def ask(browser, task, promise, settings):
    """Fill in the form and return the best of each group that is shown."""
    browser.execute_script(
        """
        const form = document.getElementById("chooser");
        for (const [name, value] of Object.entries(arguments[0])) form.elements[name].value = value;
        form.requestSubmit();
        """,
        {"task": task, "promise": promise, **dict(zip("ndk", settings, strict=False))}
        | {"epsilon": settings[3]},
    )
    return browser.execute_script(
        """
        return [...document.querySelectorAll("#chooser-answer table.measured")]
            .map((table) => table.tBodies[0].rows[0].dataset)
            .map(({label, value}) => [label, Number(value)]);
        """
    )


def answer(browser):
    """Return the text of the answer."""
    return browser.find_element("id", "chooser-answer").text


ASKED = [
    ("kmeans", "approximate", (100_000, 10, 10, 1.0)),
    ("kmeans", "approximate", (5_000, 2, 15, 0.1)),
    ("kmeans", "approximate", (3_000, 3, 12, 0.2)),
    ("kmeans", "approximate", (90_000, 40, 60, 0.07)),
    ("kmeans", "approximate", (12_000, 2, 5, 0.1)),
    ("kmeans", "approximate", (10**7, 10, 10, 0.001)),
    ("kmeans", "pure", (10**7, 10, 10, 0.01)),
    ("kmeans", "pure", (5_000, 2, 15, 1.0)),
    ("kmeans", "none", (5_000, 2, 15, 1.0)),
    ("mixture", "approximate", (700, 2, 3, 0.9)),
    ("mixture", "approximate", (20_000, 12, 4, 0.05)),
    ("mixture", "none", (20_000, 12, 4, 1.0)),
    ("subspaces", "approximate", (5_000, 5, 3, 1.0)),
    ("subspaces", "approximate", (1_000, 10, 3, 10.0)),
    ("subspaces", "approximate", (1_000, 20, 3, 5.0)),
    ("subspaces", "none", (320, 50, 5, 1.0)),
    ("segmentation", "none", (60, 26, 4, 1.0)),
    ("retrieval", "approximate", (10_000, 1_280, 100, 1.0)),
    ("retrieval", "approximate", (20_000, 1_000, 50, 9.0)),
    ("retrieval", "none", (10_000, 1_280, 100, 1.0)),
]


@pytest.mark.parametrize(("task", "promise", "settings"), ASKED)
def test_it_answers_with_the_best_at_the_nearest_settings(browser, task, promise, settings):
    found = [tuple(pair) for pair in ask(browser, task, promise, settings)]
    assert sorted(found) == nearest(task, promise, settings)
    assert browser.get_log("browser") == []


def test_every_setting_that_was_measured_has_its_own_answer(browser):
    """At each measured setting the page shows what was measured there."""
    rows = measured()["kmeans"]
    rows = rows[~rows["method"].isin(PLAIN)]
    points = rows[["N", "d", "k", "epsilon"]].drop_duplicates().itertuples(index=False)
    points = [tuple(float(part) for part in point) for point in points]
    assert len(points) > 50
    for point in points[::4]:
        found = [tuple(pair) for pair in ask(browser, "kmeans", "approximate", point)]
        assert sorted(found) == nearest("kmeans", "approximate", point), point


def test_the_winner_is_named_and_linked(browser, site):
    ask(browser, "kmeans", "approximate", (100_000, 10, 10, 1.0))
    assert answer(browser).startswith("Take CompressiveKMeans.")
    links = browser.execute_script(
        "return [...document.querySelectorAll('#chooser-answer a')].map((a) => a.href)"
    )
    assert (site / "methods/compressive_kmeans.html").as_uri() in links
    assert (site / "results/ckm.html").as_uri() in links
    assert "measured" in answer(browser)
    assert "extrapolated" not in answer(browser)


def test_what_is_far_or_out_of_reach_is_said(browser):
    ask(browser, "subspaces", "approximate", (600_000, 5, 3, 1.0))
    assert answer(browser).startswith("Take MomentSubspaceClustering, extrapolated (n).")
    assert "6 times, extrapolated" in answer(browser)
    ask(browser, "kmeans", "approximate", (600_000, 10, 10, 1.0))
    assert answer(browser).startswith("No result reaches your settings (n).")
    settings = "--n 600000 --features 10 --clusters 10 --epsilon 1 --delta 1e-6"
    assert f"privclust plan {settings}" in answer(browser)
    assert ask(browser, "segmentation", "pure", (60, 26, 4, 1.0)) == []
    assert answer(browser).startswith("No result")


def test_it_says_where_nothing_is_of_use(browser):
    ask(browser, "mixture", "approximate", (24_060, 10, 3, 0.01))
    assert "None is of use here: one Gaussian" in answer(browser)
    ask(browser, "mixture", "approximate", (24_060, 10, 3, 1.0))
    assert "of use" not in answer(browser)


def test_a_promise_in_the_limit_does_not_count(browser):
    ask(browser, "subspaces", "approximate", (5_000, 5, 3, 10.0))
    rows = browser.find_elements("css selector", "#chooser-answer table.measured tbody tr")
    texts = [row.text for row in rows]
    assert "only in the limit of many sweeps" in texts[-1]
    assert "not what you asked for" in texts[-1]
    assert "in the limit" not in texts[0]


def test_wrong_numbers_are_named(browser):
    ask(browser, "kmeans", "approximate", (100_000, 10, 10, 1.0))
    box = browser.find_element("name", "k")
    box.clear()
    box.send_keys("-3")
    assert answer(browser) == "Give a number above 0 for clusters, k."


def test_small_budgets_are_shown_and_many_clusters_refused(browser):
    ask(browser, "kmeans", "approximate", (10**7, 10, 10, 1e-6))
    assert "0.000001" in answer(browser)
    ask(browser, "kmeans", "approximate", (1_000, 2, 2_000, 1.0))
    assert answer(browser) == "Give fewer clusters, k, than rows, n."


def test_half_a_cluster_is_refused(browser):
    ask(browser, "kmeans", "approximate", (1_000, 2, 2, 1.0))
    box = browser.find_element("name", "k")
    box.clear()
    box.send_keys("2.5")
    assert answer(browser) == "Give a whole number for clusters, k."


def test_it_works_by_keyboard_alone(browser):
    ask(browser, "kmeans", "approximate", (100_000, 10, 10, 1.0))
    browser.find_element("name", "task").send_keys("a density")
    for text in (None, "500", "2", "3", "0.9"):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if text is not None:
            browser.switch_to.active_element.send_keys(Keys.CONTROL, "a")
            browser.switch_to.active_element.send_keys(text)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert answer(browser).startswith("Take AdaptiveGaussianMixture.")


def test_nothing_is_wider_than_a_narrow_screen(browser):
    ask(browser, "kmeans", "approximate", (100_000, 10, 10, 1.0))
    screen = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    widest = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert widest <= 360
