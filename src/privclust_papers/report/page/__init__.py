"""The page of a run: scorecard, targets with the papers' claims and numbers and ours, audit.

`render` returns ``index.html`` with embedded style and script, so that it works from a file,
without network. The page is the same byte for byte in every run. Costs and commit may differ, so
they are in ``costs.js`` in the same folder (`costs_script`). It is a script, because browsers let a
page opened from a file load scripts, but not data.
"""

from privclust_papers.report.page._fit_costs import costs_script
from privclust_papers.report.page._render import render, svg_size

__all__ = ["costs_script", "render", "svg_size"]
