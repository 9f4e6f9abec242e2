"""The log of benchmarks/ablation.py."""

import importlib
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETTINGS = {"epsilons": [1.0, 4.0], "seeds": 2, "sketch_only": False}


@pytest.mark.parametrize("other", [{"epsilons": [0.5]}, {"seeds": 1}, {"sketch_only": True}])
def test_a_log_of_other_settings_is_refused(monkeypatch, other):
    """The losses of its fits would be taken for those of the settings asked for."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    ablation = importlib.import_module("ablation")
    how = Namespace(**SETTINGS | other, each=False, only=["far rows"])
    with pytest.raises(SystemExit, match=r"has losses of .*4\.0.*; name another log"):
        ablation.measure(ROOT / "docs/results/ablation/after.jsonl", how)
