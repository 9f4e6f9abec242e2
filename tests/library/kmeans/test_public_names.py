"""What `privclust.kmeans` offers, and what it imports for it."""

import subprocess
import sys

import pytest

from privclust import kmeans


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="KMeans"):
        _ = kmeans.KMeans


def test_decoding_a_sketch_does_not_wait_for_scikit_learn():
    code = (
        "import sys; from privclust.decoding import decode; from privclust.sketches import Sketch; "
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
