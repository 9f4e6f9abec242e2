"""The documentation site, built once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(made_once, compiled_for_pages):
    """The folder of the built site; warnings are errors."""
    pytest.importorskip("sphinx", reason="the site needs the extra privclust[docs]")
    pytest.importorskip("myst_parser", reason="the site needs the extra privclust[docs]")
    pytest.importorskip(
        "opendp", reason="the quick start is a release: the extra privclust[secure]"
    )
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]

    def build(folder):
        done = subprocess.run(
            [*command, str(ROOT / "docs"), str(folder)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(compiled_for_pages / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return made_once("site with a space", build)
