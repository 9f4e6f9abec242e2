import subprocess
import sys

import numpy as np
import pytest

from privclust_papers.pipeline.seeds import generator

KEY = (2026, "mtsc", "mtsc_synthetic", {"d": 13, "n": 15}, 3)


def test_stream_is_the_same_in_another_process_and_key_order():
    script = (
        "from privclust_papers.pipeline.seeds import generator;"
        "print(generator(2026, 'mtsc', 'mtsc_synthetic', {'n': 15, 'd': 13}, 3, 'data').random())"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert float(printed.stdout) == generator(*KEY, "data").random()


def test_every_part_of_the_key_matters():
    streams = [
        generator(*KEY, "data"),
        generator(2027, *KEY[1:], "data"),
        generator(2026, "ckm", *KEY[2:], "data"),
        generator(2026, "mtsc", "other", *KEY[3:], "data"),
        generator(*KEY[:3], {"d": 13, "n": 16}, 3, "data"),
        generator(*KEY[:4], 4, "data"),
        generator(*KEY, "init"),
        generator(*KEY, "noise", "ssc"),
        generator(*KEY, "noise", "mtsc"),
    ]
    assert len({stream.random() for stream in streams}) == len(streams)


def test_streams_of_different_trials_are_uncorrelated():
    draws = np.stack(
        [generator(*KEY[:4], trial, "data").standard_normal(2000) for trial in range(20)]
    )
    correlations = np.corrcoef(draws)[np.triu_indices(20, 1)]
    # 190 correlations of standard error 1 / sqrt(2000): beyond 4.5 of them once in 1000 runs
    assert np.abs(correlations).max() < 4.5 / np.sqrt(2000)


def test_unknown_streams_and_misplaced_methods_are_refused():
    with pytest.raises(ValueError, match="it must be one of data, init, noise"):
        generator(*KEY, "other")
    with pytest.raises(ValueError, match="belongs to 'noise'"):
        generator(*KEY, "init", "ssc")
    with pytest.raises(ValueError, match="belongs to 'noise'"):
        generator(*KEY, "noise")
