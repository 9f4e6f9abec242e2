"""A run that is small and has everything the page tells of, with texts that try to break it."""

import pandas as pd
import pytest

from privclust_papers.report.verdicts import COLUMNS

NASTY = """</script><img src=x onerror="window.hacked = 1">'"&{{ 7 * 7 }}"""
SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="200pt" viewBox="0 0 300 200">
<rect width="300" height="200" fill="#fff"/><circle cx="150" cy="100" r="60" fill="#0757a8"/></svg>
"""


def target(name, paper, experiments, title="a title", **more):
    plain = {"kind": "figure", "where": "Figure 1", "ours": False, "draw": "m.f"}
    given = {"name": name, "paper": paper, "title": title, "experiments": experiments}
    return plain | given | more


def method(name, label, **params):
    steps = [["pkg.AppendOne", {}]] if name == "lrr" else []
    path = f"pkg.{name.upper()}"
    return {"name": name, "label": label, "estimator": path, "params": params, "transforms": steps}


def experiment(paper, methods, dataset=None, grid=(), trials=(0, 1), swept=()):
    return {
        "paper": paper,
        "dataset": dataset,
        "grid": list(grid),
        "n_points": 4,
        "trials": list(trials),
        "seed": 2026,
        "swept": list(swept),
        "methods": methods,
    }


def paper(name, title):
    return {
        "name": name,
        "title": title,
        "citation": f"{NASTY}, ICML",
        "file": f"config/{name}.yaml",
        "results": f"docs/results/{name}.md" if name != "audit" else "",
    }


def claim(name, paper, target, words, verdict, decided_by="2 of 3", tolerance="t", under=""):
    place = (name, paper, "paper", target, "Section 5")
    row = (*place, words, verdict, decided_by, tolerance, "generated", under, "")
    return dict(zip(COLUMNS, row, strict=True))


@pytest.fixture(scope="session")
def run():
    segmentation = [method("mtsc", f"MTSC {NASTY}", tol=0.01), method("lrr", "LRR", lam=None)]
    grid = [{"d": 13, "n": [15, 20, 30]}, {"d": [9, 13], "n": 16}]
    spec = {
        "effort": "paper",
        "changed": {"effort": "paper"},
        "citation": {
            "type": "software",
            "title": "privclust: clusters",
            "message": f"Cite it {NASTY}.",
            "authors": [{"name": "The developers"}],
            "version": "1.0",
            "references": [
                {
                    "type": "conference-paper",
                    "title": f"Subspaces & more {NASTY}",
                    "authors": [
                        {"family-names": "Montjoye", "given-names": "Y.", "name-particle": "de"},
                        {"family-names": "Rémi", "given-names": "G."},
                    ],
                    "year": 2015,
                    "conference": {"name": "ICML"},
                    "start": 7,
                    "end": 9,
                }
            ],
        },
        "papers": [
            paper("mtsc", f"Subspaces {NASTY}"),
            paper("dpem", "Mixtures"),
            paper("audit", "Attacks"),
        ],
        "targets": [
            target("mtsc_fig1", "mtsc", ["synthetic"], f"errors {NASTY}"),
            target("mtsc_tab1", "mtsc", ["motion", "synthetic"], kind="table", where="Table 1"),
            target("dpem_statements", "dpem", ["photos", "given"], kind="table", ours=True),
            target("audit_epsilon", "audit", ["attacks"], ours=True),
        ],
        "experiments": {
            "synthetic": experiment("mtsc", segmentation, grid=grid),
            "motion": experiment("mtsc", segmentation, "hopkins155", trials=range(0, 155, 10)),
            "photos": experiment("dpem", segmentation[:1], "photo_features", swept=["epsilon"]),
            "given": experiment("dpem", segmentation[:1]),
            "attacks": experiment("audit", [method("laplace", "Laplace")], trials=[3]),
        },
        "datasets": {
            "hopkins155": {
                "title": f"Hopkins {NASTY}",
                "citation": "Tron and Vidal",
                "substitutes": ["generated sequences"],
            },
            "photos": {"title": "Photographs", "citation": "Someone", "substitutes": []},
        },
        "features": {
            "photo_features": {
                "name": "photo_features",
                "dataset": "photos",
                "network": "EfficientNet-Lite0",
                "size": 96,
                "split": "classes",
            },
        },
    }
    ours = "our 95 % interval, which includes 1 of the 4 numbers printed for other methods"
    ci = "95 % interval"
    trials = "from 12 of the paper's 120 trials."
    verdicts = [
        claim("c1", "mtsc", "mtsc_fig1", f"lowest {NASTY}", "reproduced"),
        claim("c2", "mtsc", "mtsc_fig1", "below 0.08", "partly", NASTY, NASTY),
        *(
            claim(f"n/{name}/mean/", "mtsc", "mtsc_tab1", f"{name} mean error: {printed}", *rest)
            for name, printed, *rest in (
                ("MTSC", "1.60", "not comparable", f"Found: 1.5 ({ci} 1 to 2), {trials}", ours),
                ("LRR", "10.2", "not comparable", f"Found: 9.7 ({ci} 9 to 11), {trials}", ours),
                ("SSC", "2.50", "not run", "", ""),
            )
        ),
        claim("c3", "mtsc", "mtsc_fig1", "another reading", "partly", under="c1"),
        *(claim(f"d{i}", "dpem", "dpem_statements", f"rule {i}", "reproduced") for i in range(8)),
        claim("d9", "dpem", "dpem_fig9", "of a target that was not run", "not run"),
        claim("a1", "audit", "audit_epsilon", "convicted: Gamma noise", "not reproduced"),
    ]
    cases = {
        "method": ["a", "b", "c"],
        "paper": ["controls", f"mixtures {NASTY}", "controls"],
        "case": [f"Laplace {NASTY}", "Gamma", "normal"],
        "claim_by": ["ours", "paper", "ours"],
        "claimed_epsilon": ["1", "1", "10"],
        "claimed_delta": ["0", "0", "0.01"],
        "epsilon_at_least": ["0.995712", "9.74335", "0"],
        "verdict": ["consistent", "violated by at least 8.7", "cannot tell"],
        "cpu_seconds": ["0.271828", "0.314159", "0.577215"],
    }
    points = {
        "experiment": ["synthetic_data"] * 100,
        "label": [f"{NASTY} {i}" for i in range(100)],
        "n": [str(i) for i in range(100)],
        "mean_of_all": ["", *(f"{i}.123456789" for i in range(1, 100))],
    }
    tables = {
        "mtsc_fig1": pd.DataFrame(points),
        "mtsc_tab1": pd.DataFrame({NASTY: ["1"], "value": ["x"]}),
        "dpem_statements": pd.DataFrame({"value": ["1"]}),
        "audit_epsilon": pd.DataFrame(cases),
    }
    return {
        "spec": spec,
        "verdicts": pd.DataFrame(verdicts, columns=list(COLUMNS)),
        "tables": tables,
        "sizes": dict.fromkeys(tables, (400, 267)),
        "sources": {
            "synthetic": ["generated as the paper describes"],
            "motion": [f"substitute for hopkins155 {NASTY}"],
            "photos": ["photos"],
            "given": ["substitute for a user's"],
            "attacks": ["worst pairs"],
        },
    }


@pytest.fixture(scope="session")
def costs():
    """What the fits of each experiment cost, as its costs.tsv has it."""
    two = pd.DataFrame({"method": ["mtsc", "lrr"], "cpu_seconds": [1234.5, 0.25]})
    one = pd.DataFrame({"method": ["mtsc"], "cpu_seconds": [2.0]})
    attack = pd.DataFrame({"method": ["laplace"], "cpu_seconds": [9000.0]})
    return {"synthetic": two, "motion": two, "photos": one, "given": one, "attacks": attack}


@pytest.fixture(scope="session")
def nasty():
    """The text that must never become part of the page's structure."""
    return NASTY


@pytest.fixture(scope="session")
def svg():
    return SVG
