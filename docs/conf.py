"""Sphinx configuration of the documentation site: `make docs`."""

import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples are small
# Pages are run by code for AVX2, which x86 processors of today have: all of them print the same.
if platform.machine() == "x86_64":
    os.environ.update(
        NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR",
        NUMBA_CPU_FEATURES="",
        NUMBA_CPU_NAME="haswell",
        OPENBLAS_CORETYPE="Haswell",
    )

import privclust

project = "privclust"
author = "The privclust developers"
copyright = author
version = release = privclust.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",  # for the role "autolink"
    "numpydoc",
    "examples",
    "chooser",
    "citation",
    "command",
    "figures",
    "mathml",
    "names",
    "tables",
    "taking",
    "titles",
]
exclude_patterns = ["_build", "_ext", "results/*/certificate.md"]
nitpicky = True
smartquotes = False  # quotes are code in docstrings

# pages
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]
html_math_renderer = "mathml"

# docstrings
default_role = "autolink"  # `name` links where there is something of that name
autosummary_generate = False
autodoc_typehints = "none"  # they stand in the docstrings, with shapes and ranges
autodoc_member_order = "bysource"
autodoc_default_options = {  # scikit-learn's own, whose words refer to pages that are not here
    "exclude-members": "set_fit_request"
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# the site: no page asks for anything from a network
html_theme = "furo"
html_title = f"privclust {version}"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")  # cards need whole addresses
html_context = {
    "description": "Differentially private clustering, and five papers reproduced by one command",
    "html_baseurl": html_baseurl,
    "card": "_images/frontier_tab1.png",
}
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_extra_path = ["_extra"]  # 404.html, which hosts serve where a page is missing
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
