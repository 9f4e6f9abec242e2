"""The page in a real Chromium, opened from a file as a reader would."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from privclust_papers.report.page import costs_script, render
from privclust_papers.report.verdicts import VERDICTS

pytestmark = pytest.mark.system

webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
support = pytest.importorskip("selenium.webdriver.support.ui")
Keys = webdriver.Keys
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
TEXTS = """
    body, .lead, .where, .decided, .claim, .tag, .warning, a, nav a, code, button, select, input,
    caption, thead th button, td, summary, dt, .verdict.reproduced, .verdict.partly,
    .verdict.not-reproduced, .verdict.not-comparable, .verdict.not-run, .filters p, .tools p
"""
CONTRASTS = """
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]) =>
        0.2126 * light(r / 255) + 0.7152 * light(g / 255) + 0.0722 * light(b / 255);
    function ground(node) {
        const found = rgb(getComputedStyle(node).backgroundColor);
        return found.length === 4 && found[3] === 0 ? ground(node.parentElement) : found;
    }
    const worst = {};
    for (const selector of arguments[0]) {
        for (const node of document.querySelectorAll(selector)) {
            const pair = [rgb(getComputedStyle(node).color), ground(node)].map(luminance);
            const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
            worst[selector] = Math.min(ratio, worst[selector] ?? 99);
        }
    }
    return worst;
"""


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM or not DRIVER:
        pytest.skip("no Chromium and its driver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument("--window-size=1440,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.implicitly_wait(5)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def site(run, costs, svg, tmp_path_factory):
    project = tmp_path_factory.mktemp("site with a space")
    folder = project / "results/paper"
    for paper in ("mtsc", "dpem"):
        (project / "docs/results").mkdir(parents=True, exist_ok=True)
        (project / f"docs/results/{paper}.md").write_text("what came out")
    made = {"index.html": render(**run)}
    made["costs.js"] = costs_script(run["spec"], costs, "abc123")
    made["verdicts.csv"] = run["verdicts"].to_csv()
    for name, table in run["tables"].items():
        made |= {f"targets/{name}/{name}.{suffix}": svg for suffix in ("svg", "png")}
        made[f"targets/{name}/{name}.csv"] = table.to_csv()
    for name, table in costs.items():
        place = f"{run['spec']['experiments'][name]['paper']}/{name}/costs.tsv"
        made[place] = table.to_csv(sep="\t")
    for name, text in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def page(browser, site):
    """The page, freshly opened on a desktop, in light colours."""
    emulate(browser, 1440, "light")
    browser.get(site.joinpath("index.html").as_uri())
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    return browser


def emulate(browser, width, theme, media="screen"):
    """Set the width of the screen or paper, and the theme that the reader's system asks for."""
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    asked = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": asked, "media": media})


def find(page, selector):
    return page.find_element("css selector", selector)


def shown(page, table):
    """The first cells of the rows of a table that can be seen."""
    script = "return [...document.getElementById(arguments[0]).tBodies[0].rows]\
        .filter((row) => row.checkVisibility()).map((row) => row.cells[0].textContent.trim())"
    return page.execute_script(script, table)


def press(page, *keys):
    for key in keys:
        page.switch_to.active_element.send_keys(key)


def test_loads_without_errors_and_no_text_becomes_code(page):
    assert page.get_log("browser") == []
    assert page.execute_script("return window.hacked") is None
    assert page.execute_script("return document.scripts.length") == 2


def test_every_figure_shows(page):
    for image in page.find_elements("css selector", "figure img"):
        page.execute_script("arguments[0].scrollIntoView()", image)
        wait = "const done = arguments[1]; arguments[0].decode().then(() => done(true), done)"
        assert page.execute_async_script(wait, image) is True
        assert page.execute_script("return arguments[0].naturalWidth", image) == 400


def test_links_lead_to_files_that_are_there(page, site):
    links = page.execute_script("return [...document.links].map((link) => link.href)")
    files = {Path(unquote(re.sub(r"^file://|#.*", "", link))) for link in links}
    assert site / "verdicts.csv" in files
    assert [str(file) for file in files if not file.is_file()] == []


def test_filters_leave_what_fits_and_say_how_much(page):
    find(page, "select[name=paper]").send_keys("dpem")
    assert shown(page, "targets") == ["dpem_statements"]
    assert len(shown(page, "claims")) == 9
    status = find(page, ".filters [role=status]")
    assert status.text == "1 of 4 targets, 9 of 16 claims shown"
    find(page, "input[name=words]").send_keys("RULE 7")
    assert shown(page, "claims") == ["rule 7"]
    find(page, ".filters button").click()
    assert len(shown(page, "claims")) == 16
    find(page, "select[name=verdict]").send_keys("not comparable")
    assert shown(page, "targets") == ["mtsc_tab1"]
    assert len(shown(page, "claims")) == 2


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        ("subspaces figure 1", ["mtsc_fig1"]),
        ("Subspaces Table 1", ["mtsc_tab1"]),
        ("mixtures figure 1", ["dpem_statements"]),
        ("figure 11", []),
        ("lrr", ["mtsc_fig1", "mtsc_tab1"]),
        ("Laplace", ["audit_epsilon"]),
        ("hopkins155", ["mtsc_tab1"]),
    ],
)
def test_targets_are_found_by_paper_figure_method_and_data(page, words, targets):
    find(page, "input[name=words]").send_keys(words)
    assert shown(page, "targets") == targets


def test_figure_1_is_one_word(page):
    matches = "return wordsOf(arguments[0]).map((word) => word.test(arguments[1]))"
    assert page.execute_script(matches, "figure 3", "figure 31, 3 trials") == [False]
    assert page.execute_script(matches, "figure 3", "figure 3, section 6") == [True]
    assert page.execute_script(matches, "0.1 3", "at 0.15 and 13") == [False, False]
    assert page.execute_script(matches, "(a+", "f(a+b)") == [True]


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("cost", ["#costs"]),
        ("minutes", ["#costs"]),
        ("bibtex", ["#cite"]),
        ("too few", ["#meanings"]),
        ("mixtures", ["#dpem"]),
        ("nothing of it", []),
        ("", []),
    ],
)
def test_other_parts_of_the_page_are_found(page, words, places):
    find(page, "input[name=words]").send_keys(words or "x", *([] if words else [Keys.BACKSPACE]))
    links = page.find_elements("css selector", ".elsewhere a")
    found = [link.get_attribute("href").split("#")[1] for link in links if link.is_displayed()]
    assert [f"#{name}" for name in found] == places


def test_the_commit_is_shown(page):
    assert find(page, "[data-commit]").text == "abc123"


def test_tables_can_be_copied_as_latex(page, nasty):
    script = "return latexOf(document.querySelector(arguments[0]))"
    lines = page.execute_script(script, "#cases").splitlines()
    assert lines[0].startswith("% The audit")
    assert lines[2:5] == [
        r"\begin{tabular}{lllrrrl}",
        r"\toprule",
        r"mechanism & of & claimed by & claimed epsilon & at delta & epsilon is at least & verdict"
        r" \\",
    ]
    assert lines[5] == r"\midrule"
    escaped = r"""</script><img src=x onerror="window.hacked = 1">'"\&\{\{ 7 * 7 \}\}"""
    assert lines[6] == rf"Laplace {escaped} & controls & ours & 1 & 0 & 0.9957 & consistent \\"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    # what is shown: without rows that a filter hides, in the order that a reader gave
    find(page, "[data-filters=cases] input[name=words]").send_keys("controls")
    find(page, "#cases th:nth-child(4) button").click()
    find(page, "#cases th:nth-child(4) button").click()
    rows = page.execute_script(script, "#cases").splitlines()[6:-2]
    assert [row.split(" & ")[0][:6] for row in rows] == ["normal", "Laplac"]
    cell = (
        "const c = document.createElement('td'); c.textContent = arguments[0]; return latexCell(c)"
    )
    assert page.execute_script(cell, "-0.5") == "$-0.5$"
    assert page.execute_script(cell, r"a_b 5 % ~ ^ \x") == (
        r"a\_b 5 \% \textasciitilde{} \textasciicircum{} \textbackslash{}x"
    )


def test_latex_that_cannot_be_copied_is_shown_and_selected(page):
    refuse = "navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))"
    page.execute_script(refuse)
    tools = find(page, "#cases").find_element("xpath", "../following-sibling::p")
    tools.find_element("css selector", "button").click()
    said = tools.find_element("css selector", "[role=status]")
    support.WebDriverWait(page, 5).until(lambda _: said.text)
    assert said.text == "Selected: press Ctrl+C"
    assert "\\begin{tabular}" in page.execute_script("return getSelection().toString()")


def test_cases_of_the_audit_have_filters_of_their_own(page):
    find(page, "[data-filters=cases] input[name=words]").send_keys("gamma")
    assert shown(page, "cases") == ["Gamma"]
    assert len(shown(page, "claims")) == 16


def test_headers_sort_by_mouse_and_by_keyboard(page):
    header = find(page, "#cases th:nth-child(4)")
    header.find_element("css selector", "button").click()
    assert shown(page, "cases")[-1] == "normal"
    assert header.get_attribute("aria-sort") == "ascending"
    header.find_element("css selector", "button").send_keys(Keys.ENTER)
    assert shown(page, "cases")[0] == "normal"
    assert header.get_attribute("aria-sort") == "descending"
    assert find(page, "#cases th:nth-child(5)").get_attribute("aria-sort") == "none"


def test_numbers_sort_as_numbers_and_empty_cells_stay_last(page):
    find(page, "#targets thead th:nth-child(4) button").click()
    assert shown(page, "targets")[:2] == ["mtsc_fig1", "dpem_statements"]  # 1, 8, none, none
    find(page, "#targets thead th:nth-child(4) button").click()
    assert shown(page, "targets")[:2] == ["dpem_statements", "mtsc_fig1"]


def test_verdicts_sort_by_rank(page):
    find(page, "#claims thead th:nth-child(3) button").click()
    script = "return [...document.querySelectorAll('#claims tbody .verdict')].map(v => v.innerText)"
    found = list(dict.fromkeys(page.execute_script(script)))
    assert found == [verdict for verdict in VERDICTS if verdict in found]
    assert len(found) == 5


def test_figures_open_zoom_and_close_by_keyboard(page):
    figure = find(page, "a.zoom")
    page.execute_script("arguments[0].focus()", figure)
    press(page, Keys.ENTER)
    dialog, image = find(page, "#zoom"), find(page, "#zoom img")
    assert dialog.get_attribute("open") == "true"
    assert image.get_attribute("src").endswith("targets/mtsc_fig1/mtsc_fig1.svg")
    fitted = image.size["width"]
    assert image.size["height"] == pytest.approx(fitted * 2 / 3, abs=1)
    press(page, "+", "+")
    assert image.size["width"] == pytest.approx(fitted * 1.25**2, abs=1)
    assert image.size["height"] == pytest.approx(fitted * 1.25**2 * 2 / 3, abs=1)
    assert find(page, "#zoom output").text == "156 %"
    press(page, "-")
    assert image.size["width"] == pytest.approx(fitted * 1.25, abs=1)
    press(page, "0")
    assert image.size["width"] == fitted
    press(page, Keys.ESCAPE)
    assert dialog.get_attribute("open") is None
    assert page.switch_to.active_element == figure


def test_figures_zoom_by_wheel_and_buttons(page):
    find(page, "a.zoom").click()
    stage, image = find(page, ".stage"), find(page, "#zoom img")
    fitted = image.size["width"]
    wheel = "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -1, cancelable: true}))"
    page.execute_script(wheel, stage)
    find(page, "[data-zoom=in]").click()
    assert image.size["width"] == pytest.approx(fitted * 1.25**2, abs=1)
    find(page, "[data-zoom=out]").click()
    find(page, "[data-zoom=fit]").click()
    assert image.size["width"] == fitted
    find(page, "[data-zoom=close]").click()
    assert find(page, "#zoom").get_attribute("open") is None


def test_costs_come_from_the_file_beside_the_page(page, nasty):
    costs = find(page, "[data-costs=synthetic]")
    costs.find_element("css selector", "summary").click()
    assert "Cost: 1,235 s of CPU time in fits" in costs.text
    assert f"MTSC {nasty} 1234.50" in costs.text
    attack = find(page, "[data-costs=attacks] summary")
    assert attack.text == "Cost: 9,000 s (2.5 h) of CPU time in fits"


def test_commands_can_be_copied_or_else_are_selected(page):
    find(page, "#mtsc_fig1 ~ .again button").click()
    said = find(page, "#mtsc_fig1 ~ .again [role=status]")
    support.WebDriverWait(page, 5).until(lambda _: said.text)
    command = "snakemake --cores 2 mtsc_fig1 --config effort=paper"
    if said.text == "Copied":
        paste = "const done = arguments[0]; navigator.clipboard.readText().then(done, done)"
        page.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
        assert page.execute_async_script(paste) == command
    else:
        assert said.text == "Selected: press Ctrl+C"
        assert page.execute_script("return getSelection().toString()") == command


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_page_does_not_scroll_sideways(page, width):
    emulate(page, width, "light")
    page.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    root = "document.documentElement"
    size = page.execute_script(f"return [{root}.scrollWidth, {root}.clientWidth, innerWidth]")
    assert size[0] == size[1]
    assert size[2] == width
    # what is wider than the page scrolls within it, also by keyboard
    script = "return [...document.querySelectorAll('table')]\
        .every((table) => table.closest('.scroll[tabindex=\"0\"]'))"
    assert page.execute_script(script)


def test_no_table_of_the_scorecard_is_cut_off_on_a_small_laptop(page):
    emulate(page, 1280, "light")
    script = """return [...document.querySelectorAll('[aria-labelledby=scorecard] .scroll')]
        .map((part) => [part.scrollWidth, part.clientWidth])"""
    sizes = page.execute_script(script)
    assert len(sizes) == 3
    assert [whole for whole, _ in sizes] == [shown for _, shown in sizes]


OVERFLOWS = """
    return [...document.querySelectorAll('.scroll')].filter((part) => part.checkVisibility()).map(
        (part) => [part.scrollWidth > part.clientWidth + 1,
                   part.previousElementSibling.matches('.hint')
                   && part.previousElementSibling.checkVisibility(),
                   part.classList.contains('more')])
"""


@pytest.mark.parametrize("width", [400, 1280])
def test_tables_that_are_wider_than_the_page_say_so(page, width):
    emulate(page, width, "light")
    page.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")

    def is_settled(_):
        return all(a == b == c for a, b, c in page.execute_script(OVERFLOWS))

    support.WebDriverWait(page, 5).until(is_settled)
    wide = [overflows for overflows, *_ in page.execute_script(OVERFLOWS)]
    assert any(wide) == (width == 400)
    if width == 400:  # at its right end there is nothing more to the right
        script = "const t = document.querySelector('#targets').parentElement; t.scrollLeft = 9e9"
        page.execute_script(script)
        more = "return document.querySelector('#targets').parentElement.matches('.more')"
        support.WebDriverWait(page, 5).until(lambda _: not page.execute_script(more))


def test_claims_are_seen_without_scrolling_in_a_box(page):
    sizes = page.execute_script("""return [...document.querySelectorAll('.target .claims')]
        .map((list) => [list.scrollHeight, list.clientHeight])""")
    assert sizes
    assert all(whole == shown for whole, shown in sizes)


def test_no_column_is_lost_where_every_verdict_occurs(browser, run, tmp_path):
    """As at paper effort, with a paper's long title and hundreds of claims."""
    first = run["verdicts"].iloc[0].to_dict()
    claims = [
        first | {"id": f"{verdict} {i}", "verdict": verdict, "of": of}
        for verdict in VERDICTS
        for of in ("paper", "ours", "code")
        for i in range(120)
    ]
    papers = [dict(paper) for paper in run["spec"]["papers"]]
    papers[0]["title"] = "Supervised Manifold Learning of Deep Features With Privacy"
    spec = run["spec"] | {"papers": papers}
    page = render(**run | {"spec": spec, "verdicts": pd.DataFrame(claims)})
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    emulate(browser, 1280, "light")
    browser.get((tmp_path / "index.html").as_uri())
    script = """return [...document.querySelectorAll('[aria-labelledby=scorecard] .scroll')]
        .map((part) => [part.scrollWidth, part.clientWidth])"""
    sizes = browser.execute_script(script)
    assert [whole for whole, _ in sizes] == [shown for _, shown in sizes]


def test_both_themes_can_be_read(page):
    colors = {}
    for theme in ("light", "dark"):
        emulate(page, 1440, theme)
        colors[theme] = find(page, "body").value_of_css_property("background-color")
        worst = page.execute_script(CONTRASTS, [s.strip() for s in TEXTS.split(",")])
        assert len(worst) == TEXTS.count(",") + 1
        assert {selector: ratio for selector, ratio in worst.items() if ratio < 4.5} == {}
        figure = find(page, "a.zoom").value_of_css_property("background-color")
        assert figure == "rgba(255, 255, 255, 1)"
    assert colors["light"] != colors["dark"]


def test_keyboard_comes_first_to_a_way_past_the_contents(page):
    press(page, Keys.TAB)
    skip = page.switch_to.active_element
    assert skip.text == "Skip to the results"
    assert skip.value_of_css_property("outline-style") == "solid"
    press(page, Keys.ENTER, Keys.TAB)
    assert page.switch_to.active_element.find_elements("xpath", "ancestor::main")


@pytest.mark.parametrize("name", ["ckm/ckm_tab_snr", "dpem/dpem_fig2", "mtsc/mtsc_tab1_l1"])
def test_wide_tables_are_not_cut_off_on_a_small_laptop(browser, run, tmp_path, name):
    """Of 15 to 24 columns, at paper effort."""
    results = Path(__file__).parents[4] / "docs/results"
    table = pd.read_csv(results / f"{name}.csv", dtype=str, keep_default_na=False)
    page = render(**run | {"tables": dict.fromkeys(run["tables"], table)})
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    emulate(browser, 1280, "light")
    browser.get((tmp_path / "index.html").as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    script = """return [...document.querySelectorAll('.target .scroll.tall')]
        .map((part) => [part.scrollWidth, part.clientWidth])"""
    sizes = browser.execute_script(script)
    assert sizes
    assert all(whole <= shown for whole, shown in sizes)


@pytest.mark.parametrize("width", [794, 1123])
@pytest.mark.parametrize("name", ["ckm/ckm_tab_snr", "dpem/dpem_fig2", "mtsc/mtsc_tab1_l1"])
def test_a_print_on_a4_uses_its_width_and_cuts_no_table_off(browser, run, tmp_path, name, width):
    """Upright or across."""
    results = Path(__file__).parents[4] / "docs/results"
    table = pd.read_csv(results / f"{name}.csv", dtype=str, keep_default_na=False)
    page = render(**run | {"tables": dict.fromkeys(run["tables"], table)})
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    emulate(browser, width, "light", "print")
    browser.get((tmp_path / "index.html").as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    script = """return [document.querySelector('main').clientWidth,
        ...[...document.querySelectorAll('table')].filter((table) => table.checkVisibility())
            .map((table) => table.getBoundingClientRect().right)]"""
    main, *ends = browser.execute_script(script)
    heads = browser.execute_script("return document.querySelectorAll('thead th button').length")
    emulate(browser, width, "light")
    assert main > 0.95 * width
    assert heads > 0
    assert ends
    assert max(ends) <= width


def test_motion_is_left_out_where_that_is_asked(page):
    page.execute_script("document.documentElement.style.scrollBehavior = ''")
    script = "return getComputedStyle(document.documentElement).scrollBehavior"
    assert page.execute_script(script) == "smooth"
    asked = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": asked})
    assert page.execute_script(script) == "auto"


def test_all_is_there_without_javascript(page):
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.refresh()
        assert find(page, "a.zoom").get_attribute("href").endswith("mtsc_fig1.svg")
        assert "Copy" not in find(page, ".again").text
        assert not find(page, "form.filters").is_displayed()
        text = find(page, "main").get_attribute("textContent")
        assert "synthetic/costs.tsv" in text
    finally:
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
