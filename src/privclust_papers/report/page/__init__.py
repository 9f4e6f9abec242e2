"""The page of a run: scorecard, targets with the papers' words and numbers beside ours, audit.

`render` gives ``index.html``, whose style and script stand in it, so that it works from a file,
without network. What the same fits cost differs from run to run, and an edit of a README gives
another commit, while a page is the same byte for byte: costs and commit stand in ``costs.js``
beside it (`costs_script`), a script because a page that was opened from a file may load one, but
may not read data.
"""

from privclust_papers.report.page._fit_costs import costs_script
from privclust_papers.report.page._render import render, svg_size

__all__ = ["costs_script", "render", "svg_size"]
