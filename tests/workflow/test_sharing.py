"""Statistics that the methods of an experiment share, computed in shards."""

import io
import shutil
from pathlib import Path

import pandas as pd
import pytest

from privclust_papers.pipeline import artefacts

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
FOLDER = "results/quick/mtsc/shared_sums"


@pytest.fixture
def sharing_project(new_project):
    def make():
        project = new_project()
        project.put_paper(HERE / "sharing.yaml")
        shutil.copy(HERE / "sums.py", project.folder / "src/sums.py")
        return project

    return make


def run(project, cores):
    """Run to the summary and return what does not tell how the work was cut."""
    project.run("--cores", cores, f"{FOLDER}/summary.csv")
    return {k: v for k, v in project.results().items() if "/fit/" not in k and "/shared/" not in k}


def test_cores_blocks_batches_and_shards_change_no_byte(sharing_project):
    project = sharing_project()
    expected = run(project, 2)
    assert {Path(path).name for path in expected} == {"metrics.h5", "trials.csv", "summary.csv"}
    # on one core both methods in one job, in two blocks of three shards, or all with the evaluation
    for block, n_fits, n_shards in ((4, 2, 6), (8, 0, 0)):
        cut = sharing_project()
        other = f"block: {block}, shards: 3, together: true"
        cut.edit("config/papers/mtsc/paper.yaml", "block: 4, shards: 2", other)
        assert run(cut, 1) == expected
        fits = [path for path in cut.results() if "/fit/" in path]
        shards = [path for path in cut.results() if "/shared/" in path]
        assert (len(fits), len(shards)) == (n_fits, n_shards)

    trials = pd.read_csv(io.BytesIO(expected[f"{FOLDER}/trials.csv"]))
    deaf, lean = (trials[trials["method"] == name] for name in ("deaf", "lean"))
    assert len(deaf) == len(lean) == 8
    assert deaf["error"].max() < 1e-9  # the sums of all shards are those of the data
    assert not deaf["to_reference"].any()
    assert (lean["to_reference"] > 1e-3).all()

    # a fit says which shards it read
    block = artefacts.read(project.folder / FOLDER / "fit/lean/block_0000.h5", "fit")
    first = artefacts.read(project.folder / FOLDER / "shared/block_0000/shard_0000.h5", "shared")
    assert sorted(block.inputs) == ["shard_0000", "shard_0001"]
    assert block.inputs["shard_0000"] == first.digest
    for path in (project.folder / FOLDER / "shared").rglob("*.h5"):
        log = f"logs/quick/mtsc/shared_sums/shared/{path.parent.name[6:]}_{path.stem[6:]}.log"
        assert "shared_sums shard" in (project.folder / log).read_text()

    # a shard that is missing is made again, though nothing else is missing before the figure
    shard = project.folder / FOLDER / "shared/block_0001/shard_0001.h5"
    content = shard.read_bytes()
    shard.unlink()
    assert project.planned("shared_figure")["share"] == 1
    shard.write_bytes(content)

    # another value of epsilon refits and draws no shard again; metrics never read the shards
    project.edit("config/papers/mtsc/paper.yaml", r"block: 4", "block: 6")
    project.edit(
        "config/papers/mtsc/paper.yaml", r"epsilon: \[0.1, 1.0\]", "epsilon: [0.1, 1.0, 2.0]"
    )
    plan = project.planned(f"{FOLDER}/summary.csv")
    assert plan == {"fit": 4, "evaluate": 1}
    project.edit("src/sums.py", "standard_normal", "standard_cauchy")
    assert project.planned(f"{FOLDER}/summary.csv")["share"] == 4
