"""The log of benchmarks/ablation.py."""

import importlib
import json
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = {"epsilons": [1.0, 4.0], "seeds": 2, "sketch_only": False}
DONE = [("", "", 1.0), ("stage", "far rows", 0.0)]


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measure a change that is in the log already; fits are an error."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    ablation = importlib.import_module("ablation")
    monkeypatch.setattr(ablation, "losses", lambda *_: pytest.fail("a fit was made"))
    subject = ablation.Subject((), {"far rows": {}}, lambda: [Namespace(name="one")] * 2)
    rows = [dict(zip(("module", "names", "factor"), key, strict=True)) | SETTINGS for key in DONE]
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps(row | {"losses": [[1.0, 1.0]], "cpu_s": 1.0}) + "\n" for row in rows)
    )
    return lambda **settings: ablation.measure(
        log, subject, Namespace(**SETTINGS | settings, each=False, screened=None, only=["far rows"])
    )


def test_what_a_log_has_is_not_measured_again(measured):
    measured()


@pytest.mark.parametrize("other", [{"epsilons": [0.5]}, {"seeds": 1}, {"sketch_only": True}])
def test_a_log_of_other_settings_is_refused(measured, other):
    """The losses of its fits would be taken for those of the settings asked for."""
    with pytest.raises(SystemExit, match=r"has losses of .*4\.0.*; name another log"):
        measured(**other)
