"""What docs/audit.md lets a newcomer copy runs."""

import re
import warnings
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs/audit.md").read_text(encoding="utf-8")


def test_ten_lines_audit_an_estimator(capsys):
    part = PAGE.partition("## An estimator of your own")[2]
    (code,) = re.findall(r"```python\n(.*?)```", part.partition("\n## ")[0], re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "docs/audit.md", "exec"), {})
    said = capsys.readouterr().out
    verdicts = re.findall(r"^(violated|consistent|cannot tell|nothing found)", said, re.M)
    assert verdicts[0] != "violated"
    assert verdicts[1:] == ["consistent", "nothing found"]
    (bound,) = re.findall(r"^consistent.*epsilon is at least ([0-9.]+)", said, re.M | re.S)[-1:]
    assert 0.5 <= float(bound) <= 1.0
    assert np.isfinite(float(bound))
