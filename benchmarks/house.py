"""How large is the code, how do its parts hang together, and how many functions does a call enter?

    python benchmarks/house.py [--source FOLDER]

``--source`` names the ``src`` folder of another checkout, to compare two commits. Printed are
tables in Markdown:

1. Lines of Python by package: code, docstrings, full-line comments, blank lines.
2. Imports: edges and cycles between rooms (a room is a folder or module below a package), and
   imports of private names across packages and across rooms.
3. Public names by package: those in stubs and ``__all__``, and those that public modules define.
4. Distinct Python functions, and rooms, that four calls on small data enter. Compiled loops are not
   seen. Each call is made twice in a process, and the second is counted: imports are over by then.
5. CPU seconds of imports, and the size of the wheel.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tokenize
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scratch import ROOT, markdown

ROWS = """
import numpy as np
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(center, 1.0, (1000, 2)) for center in (-5.0, 0.0, 5.0)])
"""
CALLS = {
    "CompressiveKMeans.fit": """
from privclust.kmeans import CompressiveKMeans
model = CompressiveKMeans(3, epsilon=1.0, delta=1e-6, bounds=(-10, 10), random_state=0)
def call(): model.fit(X)
""",
    "MomentSubspaceClustering.fit": """
from privclust.subspaces import MomentSubspaceClustering
lines = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
X = rng.normal(size=(2000, 1)) * lines[np.arange(2000) % 2] + 0.05 * rng.normal(size=(2000, 4))
model = MomentSubspaceClustering(2, 1, epsilon=5.0, delta=1e-5, random_state=0)
def call(): model.fit(X)
""",
    "DPLloyd.fit": """
from privclust.kmeans import DPLloyd
model = DPLloyd(3, epsilon=1.0, bounds=(-10, 10), random_state=0)
def call(): model.fit(X)
""",
    "privclust cluster": """
import os, tempfile
from privclust.command import main
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
np.savetxt("rows.csv", X, delimiter=",", header="x,y", comments="")
command = "cluster rows.csv --bounds x=-10:10,y=-10:10 --clusters 3 --epsilon 1 --delta 1e-6"
command += " --seed 0 --force -o out"
def call(): assert main(command.split()) == 0
""",
}
COUNTED = """
import json, sys, threading, warnings
from pathlib import Path
warnings.simplefilter("ignore")
call()
source, entered = sys.argv[1], set()
def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source) and code.co_name != "<module>":
        entered.add((code.co_filename, code.co_qualname))
threading.setprofile(note)
sys.setprofile(note)
call()
sys.setprofile(None)
rooms = {Path(name).relative_to(source).parts[:2] for name, _ in entered}
print(json.dumps([len(entered), len(rooms)]))
"""
IMPORTS = {
    "import privclust": "import privclust",
    "CompressiveKMeans": "from privclust.kmeans import CompressiveKMeans",
}
BUILD = "import sys; from hatchling import build; print(build.build_wheel(sys.argv[1]))"


def modules(source):
    """Return the syntax tree and text of each module below a folder, by dotted name."""
    found = {}
    for path in sorted(source.glob("*/**/*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        found[name] = ast.parse(text), text
    return found


def line_counts(tree, text):
    """Return the numbers of lines of each kind in a module."""
    docstrings = set()
    for node in ast.walk(tree):
        is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_constant and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }
    counts = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        kind = "docstrings" if number in docstrings else "blank" if not line.strip() else "code"
        counts["comments" if number in comments else kind] += 1
    return counts


def lines_by_package(found):
    """Return a table of lines by package."""
    counts = {}
    for name, (tree, text) in found.items():
        counts.setdefault(name.partition(".")[0], Counter()).update(line_counts(tree, text))
    table = pd.DataFrame.from_dict(counts, orient="index").fillna(0).astype(int)
    table = table[["code", "docstrings", "comments", "blank"]]
    table.loc["all"] = table.sum()
    table["lines"] = table.sum(axis=1)
    return table.rename_axis("package").reset_index()


def room_of(name):
    """Return the room of a module: the first two parts of its dotted name."""
    return ".".join(name.split(".")[:2])


def imports(found):
    """Yield importing module, imported module and imported name of each import statement."""
    packages = {name.partition(".")[0] for name in found}
    for module, (tree, _) in found.items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and (node.module or "").partition(".")[0] in packages
            ):
                yield from ((module, node.module, alias.name) for alias in node.names)


def import_table(found):
    """Return a table of edges, cycles and private imports."""
    edges, private = set(), Counter()
    for module, target, name in imports(found):
        full = f"{target}.{name}"
        reached = full if full in found or f"{full}.__init__" in found else target
        ours, theirs = room_of(module), room_of(reached)
        if ours != theirs:
            edges.add((ours, theirs))
        parts = full.split(".")
        if any(part.startswith("_") and not part.startswith("__") for part in parts):
            if parts[0] != module.partition(".")[0]:
                private["private imports across packages"] += 1
            elif ours != theirs:
                private["private imports across rooms of a package"] += 1
    rooms = sorted({room for edge in edges for room in edge})
    index = {room: i for i, room in enumerate(rooms)}
    starts, ends = zip(*((index[a], index[b]) for a, b in edges), strict=True)
    graph = csr_array((np.ones(len(edges)), (starts, ends)), shape=(len(rooms),) * 2)
    sizes = np.bincount(connected_components(graph, connection="strong")[1])
    numbers = {
        "rooms with imports": len(rooms),
        "edges between rooms": len(edges),
        "cycles of rooms": int((sizes > 1).sum()),
        "private imports across packages": private["private imports across packages"],
        "private imports across rooms of a package": private[
            "private imports across rooms of a package"
        ],
    }
    return pd.DataFrame(numbers.items(), columns=["imports", "number"])


def public_names(source, found):
    """Return a table of the numbers of public names by package."""
    names = {}
    for module, (tree, _) in found.items():
        parts = [part for part in module.split(".") if part != "__init__"]
        if any(part.startswith("_") for part in parts):
            continue
        exported = set()
        stub = source.joinpath(*module.split(".")).with_suffix(".pyi")
        bodies = [tree.body, ast.parse(stub.read_text()).body if stub.is_file() else []]
        for node in bodies[0]:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                exported.add(node.name)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                exported.update(ast.literal_eval(node.value))
        exported.update(
            alias.asname or alias.name
            for node in bodies[1]
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        )
        names.setdefault(parts[0], set()).update((".".join(parts), name) for name in exported)
    rows = [(package, len(found)) for package, found in sorted(names.items())]
    return pd.DataFrame(rows, columns=["package", "public names"])


def python(source, code, *arguments):
    """Run code with the packages of a folder and return the last line that it printed."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def entered(source):
    """Return a table of the functions and rooms that calls enter."""
    rows = [
        (name, *json.loads(python(source, ROWS + code + COUNTED, source)))
        for name, code in CALLS.items()
    ]
    return pd.DataFrame(rows, columns=["call", "functions", "rooms"])


def sizes(source):
    """Return a table of CPU seconds of imports and of the wheel's size."""
    rows = []
    for name, code in IMPORTS.items():
        code = f"import time\n{code}\nprint(time.process_time())"
        seconds = [float(python(source, code)) for _ in range(5)]
        rows.append((f"{name}, CPU s", f"{statistics.median(seconds):.2f}"))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", BUILD, folder],
            **{"cwd": source.parent, "check": True, "capture_output": True, "text": True},
        )
        wheel = Path(folder) / done.stdout.split()[-1]
        with zipfile.ZipFile(wheel) as archive:
            rows.append(("files in the wheel", f"{len(archive.namelist()):,}"))
        rows.append(("wheel, bytes", f"{wheel.stat().st_size:,}"))
    return pd.DataFrame(rows, columns=["size", "value"])


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="a src folder")
    source = parser.parse_args().source.resolve()
    found = modules(source)
    tables = lines_by_package(found), import_table(found), public_names(source, found)
    for table in (*tables, entered(source), sizes(source)):
        print(markdown(table), end="\n\n")


if __name__ == "__main__":
    main()
