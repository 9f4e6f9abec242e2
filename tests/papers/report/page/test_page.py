import copy
import html
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from privclust_papers.pipeline.jobs import Jobs
from privclust_papers.report.page import costs_script, render, svg_size


class Tags(HTMLParser):
    """Collects tags with their attributes, and texts, and checks that tags close."""

    VOID = ("meta", "img", "br", "link", "input", "wbr")

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def attributes(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page(run):
    return render(**run)


@pytest.fixture(scope="module")
def tags(page):
    return Tags(page)


@pytest.fixture(scope="module")
def words(tags):
    return " ".join("".join(tags.texts).split())


def test_page_is_well_formed_and_no_text_becomes_markup(tags, page, nasty):
    assert page.count("<script") == page.count("</script>") == 2
    assert all("onerror" not in attributes for _, attributes in tags.found)
    assert "".join(tags.texts).count(nasty) > 20
    assert nasty not in page
    assert any(nasty in attributes["alt"] for attributes in tags.attributes("img"))


def test_ids_are_unique_and_links_lead_somewhere(tags):
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    links = {a["href"][1:] for a in tags.attributes("a") if a["href"].startswith("#")}
    named = {
        name
        for _, attributes in tags.found
        for key in ("aria-labelledby", "data-filters")
        for name in attributes.get(key, "").split()
    }
    assert len(ids) == len(set(ids))
    assert links | named <= set(ids)


def test_headings_are_in_order(tags):
    levels = [int(tag[1]) for tag, _ in tags.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_target_has_figure_numbers_command_and_an_anchor(tags, words):
    links = {attributes["href"] for attributes in tags.attributes("a")}
    for name in ("mtsc_fig1", "mtsc_tab1", "dpem_statements", "audit_epsilon"):
        assert f"#{name}" in links
        assert {f"targets/{name}/{name}.{suffix}" for suffix in ("svg", "png", "csv")} <= links
        assert f"snakemake --cores 2 {name} --config effort=paper" in words
    assert "verdicts.csv" in links
    assert "snakemake --cores 2 mtsc --config effort=paper" in words


def commands_of(run, effort, **changed):
    spec = run["spec"] | {"effort": effort, "changed": changed}
    page = render(**run | {"spec": spec})
    return [html.unescape(text) for text in re.findall('<code class="command">(.*?)</code>', page)]


def test_commands_of_a_run_as_configured_name_no_setting(run):
    found = commands_of(run, "quick")
    assert "snakemake --cores 2 mtsc_tab1" in found
    assert "snakemake --cores 2 costs" in found
    assert [text for text in found if "--config" in text] == [
        "snakemake --cores 2 --config effort=paper"  # what quick effort is not
    ]


def test_every_command_names_what_the_run_had_set(run):
    found = commands_of(run, "quick", seed="7", mirror="/path/to/my data", papers="[a.yaml]")
    settings = "--config seed=7 'mirror=/path/to/my data' 'papers=[a.yaml]'"
    for rule in ("mtsc_tab1", "mtsc", "audit_epsilon", "costs"):
        assert f"snakemake --cores 2 {rule} {settings}" in found
    assert f"snakemake --cores 2 {settings} effort=paper" in found
    assert all(settings in text for text in found)


def test_alternative_texts_say_what_is_claimed_of_a_figure(tags):
    texts = [
        a["alt"] for a in tags.attributes("img") if a.get("src", "").endswith(".svg") and a["alt"]
    ]
    assert "below 0.08: partly" in texts[0]
    assert "3 printed numbers are compared with ours" in texts[1]
    assert "5 more claims follow" in texts[2]


def test_printed_numbers_stand_beside_ours(page):
    row = re.search(r"<tr><th scope=\"row\">LRR mean error</th>.*?</tr>", page, re.DOTALL)[0]
    cells = re.findall(r"<td[^>]*>(?:<span[^>]*>)?([^<]*)", row)
    assert cells == ["10.2", "9.7", "9 to 11", "1 of 4", "12 of 120", "not comparable"]


def test_substitutes_are_flagged_where_they_stand_in(page):
    sections = {name: text for name, text in sections_of(page)}
    assert "Not the paper's data." in sections["mtsc_tab1"]
    assert "generated sequences" in sections["mtsc_tab1"]
    assert "Not the paper's data." not in sections["mtsc_fig1"]
    assert page.count("substitute data") == 2  # of the scorecard's targets


def sections_of(page):
    for text in page.split('<section class="target"')[1:]:
        yield re.search(r'<h3 id="(\w+)"', text)[1], text


def test_claims_are_counted_by_verdict(words):
    assert "9 reproduced 1 partly 1 not reproduced 2 not comparable 2 not run" in words
    assert "2 figures and tables of papers on finding structure in data, and 2 of our own." in words
    assert "It judged 15 claims and printed numbers" in words


def test_a_claim_under_a_row_follows_it_and_is_not_counted(page):
    table = page.split('<table id="claims"')[1].split("</table>")[0]
    names = re.findall(r'<th scope="row" class="(words[^"]*)">(\w+)', table)
    place = names.index(("words under", "another"))
    assert names[place - 1] == ("words", "lowest")


def test_the_published_verdict_is_next_to_this_runs(run, page):
    assert "published run" not in page
    shown = render(**run, published={"c2": "consistent", "n/LRR/mean/": "reproduced"})
    for name, expected in (("mtsc_fig1", "consistent"), ("mtsc_tab1", "reproduced")):
        assert f"published run: {expected}" in dict(sections_of(shown))[name]


def test_the_gallery_has_each_figure_with_both_verdicts(run, page):
    shown = render(**run, published={"c2": "consistent", "n/LRR/mean/": "reproduced"})
    gallery = shown.split('id="gallery"')[1].split('id="scorecard"')[0]
    for target in run["spec"]["targets"]:
        name = target["name"]
        assert gallery.count(f'<a href="#{name}"><img src="targets/{name}/{name}.svg"') == 1
    (first,) = [part for part in gallery.split("<li>") if 'href="#mtsc_fig1"' in part]
    before, now = first.split("This run:")
    assert "1 consistent" in before
    assert "1 reproduced" in now
    assert "1 partly" in now
    assert "Published run" not in page


def test_data_that_are_missing_are_named_with_address(run):
    about = {"title": "Photographs", "citation": "", "substitutes": [], "homepage": "https://a.b/c"}
    sources = run["sources"] | {"photos": ["substitute: drawn"]}
    spec = run["spec"] | {"datasets": run["spec"]["datasets"] | {"photos": about}}
    shown = render(**run | {"spec": spec, "sources": sources})
    head = shown.split("<header>")[1].split("</header>")[0]
    assert 'Photographs: 1 target; the data are at <a href="https://a.b/c">' in head


def test_parameters_are_those_of_the_config(words):
    assert "d 13; n 15, 20, 30" in words
    assert "d 9, 13; n 16" in words
    assert "trials at each: 16 (number 0, 10, …, 150); seed 2026." in words
    assert "trials at each: 2; seed 2026; same data and starts along epsilon." in words
    assert "trials at each: 1 (number 3)" in words
    assert "pkg.MTSC(tol=0.01)" in words
    assert "pkg.AppendOne(), then pkg.LRR(lam=None)" in words


def test_data_are_named_and_features_with_their_images(words):
    assert "Features photo_features: EfficientNet-Lite0 on images of 96 × 96 pixels" in words
    assert "Photographs. Someone" in words
    assert "Not the paper's data. substitute for a user's. Not comparable" in words
    assert "generated as the paper describes" in words


def test_long_tables_are_cut_and_numbers_shortened(page):
    text = dict(sections_of(page))["mtsc_fig1"]
    assert "The first 40 of 100 rows" in text
    assert text.count("<tr>") == 41 + 3  # and the table of methods
    assert 'data-sort="3.123456789">3.123<' in text


def test_columns_that_are_alike_in_all_rows_are_told_once(page):
    text = dict(sections_of(page))["mtsc_fig1"]
    table = text.split('aria-label="Numbers of mtsc_fig1"')[1]
    assert "The same in all rows: experiment = synthetic_data" in " ".join(table.split())
    heads = re.findall('<th scope="col"[^>]*>(.*?)</th>', table)
    assert heads == ["label", "n", "mean_<wbr>of_<wbr>all"]  # long names may break
    # a table of one row keeps its columns
    assert "The same in all rows" not in dict(sections_of(page))["dpem_statements"]


def test_claims_that_failed_come_first_and_list_and_count_agree(run, page):
    table = page.split('<table id="claims"')[1].split("</table>")[0]
    verdicts = re.findall(r'<td data-sort="\d"><span class="verdict [a-z-]+">([^<]+)<', table)
    first = ["not reproduced", "partly", "not comparable", "reproduced", "not run"]
    assert list(dict.fromkeys(verdicts)) == first
    assert len(verdicts) == len(run["verdicts"])
    claims = run["verdicts"][~run["verdicts"]["id"].str.contains("/")]
    for name, text in sections_of(page):
        rows = claims[claims["target"] == name]
        listed = re.findall(r'<li[^>]*><span class="verdict [a-z-]+">([^<]+)<', text)
        assert sorted(listed) == sorted(rows["verdict"])
    # what is reproduced and long is folded, and its heading says how many there are
    text = dict(sections_of(page))["dpem_statements"]
    assert "<summary>8 reproduced</summary>" in text
    assert 'class="claims"' not in dict(sections_of(page))["mtsc_tab1"]


def test_targets_lead_to_the_page_of_results(page):
    link = '<a href="../../docs/results/mtsc.md">'
    assert dict(sections_of(page))["mtsc_fig1"].count(link) == 1
    assert "The results in words" not in dict(sections_of(page))["audit_epsilon"]


def test_rows_hold_the_words_that_they_are_found_by(tags, nasty):
    rows = [a["data-words"] for a in tags.attributes("tr") if "data-words" in a]
    assert len(rows) == 4
    assert f"MTSC {nasty}" in rows[0]
    assert "lrr LRR" in rows[0]
    assert f"Hopkins {nasty}" in rows[1]
    places = {a["href"]: a["data-words"] for a in tags.attributes("a") if "data-words" in a}
    assert places.keys() >= {"#costs", "#cite", "#meanings", "#mtsc"}
    assert "minutes" in places["#costs"]


def test_how_to_cite(words, nasty):
    assert f"Cite it {nasty}." in words
    assert "@software{privclust, title = {privclust: clusters}," in words
    assert "author = {de Montjoye, Y. and Rémi, G.}, year = {2015}" in words
    assert "pages = {7--9}," in words
    assert r"title = {Subspaces \& more" in words


def test_a_project_without_a_citation(run):
    page = render(**run | {"spec": run["spec"] | {"citation": None}})
    assert "@software" not in page
    assert 'id="cite"' in page


def test_nothing_in_the_page_differs_from_run_to_run(run, page):
    again = copy.deepcopy(run)
    again["tables"]["audit_epsilon"]["cpu_seconds"] = "9.99"
    assert render(**again) == page
    assert "0.314159" not in page
    assert "with cpu_seconds" in page  # where the reader finds it


def test_audit_has_a_table_of_cases(page):
    table = page.split('<table id="cases"')[1].split("</table>")[0]
    assert table.count("<tr data-paper") == 3
    assert '<td class="number">9.743</td>' in table
    assert '<span class="verdict not-reproduced">violated by at least 8.7</span>' in table
    assert '<span class="verdict not-run">cannot tell</span>' in table


def test_page_without_an_audit(run):
    spec = run["spec"]
    less = spec | {key: spec[key][:2] for key in ("papers", "targets")}
    page = render(**run | {"spec": less})
    assert '<table id="cases"' not in page
    assert "The audit" not in page


def test_fits_that_targets_share_are_said(page):
    assert 'also used for <a href="#mtsc_tab1">' in dict(sections_of(page))["mtsc_fig1"]
    assert "also used for" not in dict(sections_of(page))["audit_epsilon"]


def test_page_needs_no_network(page, tags):
    assert "://" not in page
    assert not re.search(r"@import|url\(", page)
    addresses = [a[k] for _, a in tags.found for k in ("href", "src") if k in a]
    assert not [address for address in addresses if address.startswith("/")]


def test_tables_have_captions_and_headers(page, tags):
    assert page.count("<caption>") == len(tags.attributes("table"))
    assert all("scope" in attributes for attributes in tags.attributes("th"))


def test_costs_are_json_behind_an_assignment(run, costs, nasty):
    script = costs_script(run["spec"], costs)
    found = json.loads(script.removeprefix("window.privclustCosts = ").removesuffix(";\n"))
    assert found["synthetic"] == [[f"MTSC {nasty}", 1234.5], ["LRR", 0.25]]
    assert list(found) == sorted(costs)


def test_the_commit_stands_beside_the_page_and_not_in_it(run, costs, page):
    script = costs_script(run["spec"], costs, "abc123")
    assert script == costs_script(run["spec"], costs) + 'window.privclustCommit = "abc123";\n'
    assert "abc123" not in page
    assert "data-commit" in page


def test_costs_of_nothing():
    assert costs_script({"experiments": {}}, {}) == "window.privclustCosts = {\n\n};\n"


def test_size_of_a_drawing(svg):
    assert svg_size(svg) == (400, 267)
    with pytest.raises(ValueError, match="it must have a width and a height in pt"):
        svg_size('<svg width="3cm" height="2cm">')


def test_number_without_trials(run, tags):
    empty = pd.DataFrame(columns=run["verdicts"].columns)
    page = render(**run | {"verdicts": empty})
    assert Tags(page).found
    assert "No claim about it" in page


def test_an_edit_of_any_part_of_the_page_makes_it_again():
    root = Path(__file__).parents[4]
    parts = {
        path.name
        for path in (root / "src/privclust_papers/report/page").iterdir()
        if path.is_file()
    }
    code = Jobs(SimpleNamespace(effort="quick"), {}).page_code(SimpleNamespace())
    others = {path for path in code if not path.endswith(".py")}
    assert others == {
        f"src/privclust_papers/report/page/{name}" for name in parts if not name.endswith(".py")
    }
    assert {name for name in parts if name.endswith(".py")} <= {Path(path).name for path in code}
