"""What `privclust.kmeans` offers, and what it imports for it."""

import subprocess
import sys

import pytest

from privclust import kmeans


@pytest.mark.parametrize("name", kmeans.__all__)
def test_every_public_name_can_be_had(name):
    found = getattr(kmeans, name)
    assert found.__name__ == name
    assert found.__module__ == f"privclust.kmeans.{kmeans._HOMES[name]}"


def test_other_names_are_refused():
    assert set(kmeans.__all__) == set(kmeans._HOMES)
    with pytest.raises(AttributeError, match="'KMeans'"):
        _ = kmeans.KMeans


def test_decoding_a_sketch_does_not_wait_for_scikit_learn():
    code = (
        "import sys; from privclust.kmeans import Sketch, decode; print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
