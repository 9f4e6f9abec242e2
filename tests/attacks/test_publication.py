"""Attacks on what is published: archives of runs, names, downloads, and an example's server."""

import re
from pathlib import Path

import pytest
import yaml

from privclust.core.config import ConfigError, load_validated, load_yaml
from privclust.datasets.registry import load_datasets

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
NAMES = ("abc", "0" * 64, "0" * 32, "a.zip", "package.module.name", "https://a.b/c", "x.npz")


def patterns(schema):
    """All patterns of a schema."""
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts if isinstance(schema, dict | list) else ():
        yield from patterns(part)
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]


@pytest.mark.attack(
    claim="a name is letters, digits and underscores",
    before="a name with a line break behind it passed 17 of 17 patterns: it ends up in paths",
    now="no pattern of any schema lets one pass",
)
@pytest.mark.parametrize("schema", sorted(path.name for path in SCHEMAS.glob("*.yaml")))
def test_no_name_ends_in_a_line_break(schema):
    for pattern in patterns(load_yaml(SCHEMAS / schema)):
        allowed = [name for name in NAMES if re.search(pattern, name)]
        assert allowed, pattern
        assert not [name for name in allowed if re.search(pattern, name + "\n")], pattern


@pytest.mark.attack(
    claim="a data set of one's own has a name that is safe in paths",
    before="'abc' with a line break behind it was read",
    now="an error that names the file",
)
def test_own_data_with_a_line_break_in_its_name_are_refused(tmp_path):
    entry = {"file": "rows.csv", "bounds": [0, 1], "n_clusters": 2}
    for name, passes in (("abc", True), ("abc\n", False), ("a\nbc", False)):
        path = tmp_path / "my_data.yaml"
        path.write_text(yaml.safe_dump({"panels": "panels.yaml", "data": {name: entry}}))
        if passes:
            load_validated(path, SCHEMAS / "my_data.schema.yaml")
            continue
        with pytest.raises(ConfigError, match=r"my_data\.yaml"):
            load_validated(path, SCHEMAS / "my_data.schema.yaml")


@pytest.mark.attack(
    claim="a download is what it should be",
    before="Gowalla and CUB-200-2011 were checked by MD5 alone, for which collisions can be made",
    now="CUB-200-2011 by SHA-256; of Gowalla none is known, and the config says so",
)
def test_md5_alone_is_said_where_no_other_checksum_is_known():
    path = ROOT / "config" / "datasets.yaml"
    datasets = load_datasets(path, SCHEMAS / "datasets.schema.yaml")
    weak = {n for n, d in datasets.items() for s in d.sources if s.md5 and not s.sha256}
    strong = {n for n, d in datasets.items() if d.content_sha256}
    assert weak - strong == {"gowalla"}
    assert "no SHA-256 of it is known" in path.read_text(encoding="utf-8")
