"""How many small faults in the code do the tests see?

    python benchmarks/mutants.py [--rooms ROOM ...] [--each N] [--seed S] [--hours H] [--minutes M]
                                 [--again]

From each room N places are drawn for a fault: an operator, a comparison, a constant, a guard, a
range, a sign, or a statement or an argument that is missing. Each fault is planted by itself in a
copy of the project. First the tests of the module run, then those of its room, then M minutes of
others that import the module, the nearest first. The first test that fails, or does not end, kills
the fault, if it passes without it. Faults that change no result (equivalent_mutants.csv, with
reasons) are left out of the rate, whose interval is Clopper and Pearson's. The results are kept in
benchmarks/out: the same command goes on after a stop, and ``--again`` tries survivors again.

No package fits: mutmut changes no function with a decorator, as compiled loops are, cosmic-ray
edits files in place and runs one command for all faults, and neither draws by room.
"""

import argparse
import ast
import csv
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from house import imports, modules
from scipy.stats import binomtest
from scratch import ROOT, copy_project, markdown

SOURCE = ROOT / "src"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.csv")
VERDICTS = "checks", "comparison", "verdicts"  # the modules that judge the papers' results
MIRRORS = {"privclust": "library", "privclust_audit": "audit", "privclust_papers": "papers"}
OPTIONS = ["-xv", "-n0", "-rfE", "-mnot system", "--timeout=300", "--timeout-method=thread"]
PAIRS = "+- */ &| and:or min:max minimum:maximum any:all floor:ceil True:False ==:!= is:is_not"
PAIRS += " in:not_in <:<= >:>="
SWAPS = {"//": "*", "**": "*", "%": "*"}
for one, other in (pair.split(":") if ":" in pair else pair for pair in PAIRS.split()):
    SWAPS |= {one: other.replace("_", " "), other.replace("_", " "): one}


class Fault(NamedTuple):
    """A change of one place of the code; `before` and `after` are the lines it is in."""

    file: str
    function: str
    before: str
    after: str


class Places:
    """The places of a module's text where faults are planted: first and last byte, and new text."""

    def __init__(self, text):
        self.text, self.found = text.encode(), []
        self.lines = [0, *itertools.accumulate(map(len, self.text.splitlines(keepends=True)))]
        self.walk(ast.parse(text), "")

    def ends(self, node):
        """Return where a node begins and ends, in bytes."""
        begin = self.lines[node.lineno - 1] + node.col_offset
        return begin, self.lines[node.end_lineno - 1] + node.end_col_offset

    def between(self, nodes):
        """Yield a swap of the operator between each two neighbours."""
        for left, right in itertools.pairwise(nodes):
            begin, end = self.ends(left)[1], self.ends(right)[0]
            for word in re.finditer(rb"#.*|(is not|not in|[^\s()\\#]+)", self.text[begin:end]):
                if word[1] and word[1].decode() in SWAPS:
                    yield begin + word.start(), begin + word.end(), SWAPS[word[1].decode()]

    def left_out(self, call):
        """Yield the keyword arguments of a call, each with the comma before it or after it."""
        arguments = sorted(map(self.ends, [*call.args, *call.keywords]))
        for keyword in call.keywords:
            begin, end = self.ends(keyword)
            i = arguments.index((begin, end))
            if i:
                yield arguments[i - 1][1], end, ""
            elif keyword.arg:
                yield begin, arguments[1][0] if len(arguments) > 1 else end, ""

    def walk(self, node, function):
        """Collect the places of a node and of its parts, but for types, messages and imports."""
        match node:
            case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert():
                return
            case ast.FunctionDef(name=name, args=arguments):
                parts = [*arguments.defaults, *filter(None, arguments.kw_defaults), *node.body]
                function = f"{function}.{name}".lstrip(".")
            case ast.ClassDef(name=name):
                parts, function = node.body, f"{function}.{name}".lstrip(".")
            case ast.AnnAssign():
                parts = filter(None, [node.value])
            case _:
                parts = ast.iter_child_nodes(node)
        self.found += [(function, *place) for place in self.changes(node)]
        for part in parts:
            self.walk(part, function)

    def changes(self, node):
        """Yield the faults of one node."""
        match node:
            case ast.Expr(value=ast.Call()) | ast.AugAssign():
                yield *self.ends(node), "pass"
            case ast.If() | ast.IfExp() | ast.While():
                begin, end = self.ends(node.test)
                yield begin, end, f"not ({self.text[begin:end].decode()})"
                last = node.body[-1] if isinstance(node, ast.If) else None
                if isinstance(last, ast.Raise | ast.Return | ast.Continue | ast.Break):
                    yield begin, end, "False"
            case ast.BinOp(left=left, right=right):
                yield from self.between([left, right])
            case ast.Compare(left=left, comparators=others):
                yield from self.between([left, *others])
            case ast.BoolOp(values=values):
                yield from self.between(values)
            case ast.UnaryOp(operand=operand):  # a sign or a "not"
                yield *self.ends(node), self.text[slice(*self.ends(operand))].decode()
            case ast.Call(func=ast.Name(id="range"), args=[stop] | [_, stop, *_]):
                yield *self.ends(stop), f"({self.text[slice(*self.ends(stop))].decode()}) - 1"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in SWAPS:
                end = self.ends(node.func)[1]
                yield end - len(name), end, SWAPS[name]
                yield from self.left_out(node)
            case ast.Call():
                yield from self.left_out(node)
            case ast.Slice():
                for bound, sign in ((node.lower, "+"), (node.upper, "-")):
                    if bound:
                        text = self.text[slice(*self.ends(bound))].decode()
                        yield *self.ends(bound), f"({text}) {sign} 1"
            case ast.Constant(value=bool() as value):
                yield *self.ends(node), str(not value)
            case ast.Constant(value=int() as value):
                yield *self.ends(node), str(value + 1 if value < 5 else 2 * value)
            case ast.Constant(value=float() as value):
                yield *self.ends(node), f"{0.8 * value:.6g}" if value else "0.1"

    def planted(self, file, place):
        """Return the fault of a place and the text with it; None where that is no Python."""
        function, begin, end, new = place
        text = self.text[:begin] + new.encode() + self.text[end:]
        first, last = self.text.rfind(b"\n", 0, begin) + 1, self.text.find(b"\n", end)
        lines = self.text[first:last], text[first : last + len(text) - len(self.text)]
        try:
            ast.parse(text)  # the text after "%" may be a string
        except SyntaxError:
            return None
        return Fault(file, function, *(" ".join(part.decode().split()) for part in lines)), text


def drawn(files, each, seed):
    """Return faults drawn from files, with the text; those of a larger `each` go on from these."""
    every = []
    for file in files:
        name, places = str(file.relative_to(SOURCE)), Places(file.read_text("utf-8"))
        every += [(places, name, place) for place in sorted(places.found)]
    in_turn = random.Random(seed).sample(every, len(every))
    planted = (places.planted(name, place) for places, name, place in in_turn)
    return list(itertools.islice(filter(None, planted), each))


class Suite:
    """Which tests are for a module: its own, its room's, and others that import it."""

    def __init__(self):
        found, self.exported, self.users = modules(SOURCE), {}, defaultdict(set)
        for stub in SOURCE.glob("*/**/__init__.pyi"):
            room = ".".join(stub.parent.relative_to(SOURCE).parts)
            for module, name in re.findall(r"from \.(\S+) import (\w+)", stub.read_text()):
                self.exported[room, name] = f"{room}.{module}"
        files = sorted((ROOT / "tests").rglob("test_*.py"))
        tests = {str(f.relative_to(ROOT)): (ast.parse(f.read_text("utf-8")), "") for f in files}
        self.files = list(tests)
        for user, target, name in imports(found | tests):
            of_name = self.exported.get((target, name), f"{target}.{name}")
            self.users[of_name if of_name in found else target].add(user)

    def stages(self, file):
        """Return lists of tests, each of which is run if those before it pass."""
        package, folder, *_ = Path(file).parts
        within = [t for t in self.files if t.startswith(f"tests/{MIRRORS[package]}/{folder}/")]
        own = [t for t in within if Path(t).stem == f"test_{Path(file).stem.lstrip('_')}"]
        module = ".".join(Path(file).with_suffix("").parts)
        room = [test for test in within if test not in own]
        room.sort(key=lambda test: test not in self.users[module])  # those that import it first
        if package == "privclust":
            room.append(f"tests/test_docstrings.py::test_examples[{folder}]")
        others, ring = [], {module}
        reached = ring
        while ring:
            ring = set().union(*(self.users[module] for module in ring)) - reached
            reached = reached | ring
            others += sorted(ring.intersection(self.files) - set(within))
        return own, room, others


class Copy:
    """A copy of the project, whose tests are run with a fault and without."""

    def __init__(self, folder):
        self.folder, self.passes, self.broken = folder, set(), set()
        copy_project(folder, with_kernels=True)

    def run(self, tests, seconds=None):
        """Return what failed first; None if tests pass, or time is over before one fails."""
        deselected = [f"--deselect={name}" for name in sorted(self.broken)]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        command = [sys.executable, "-m", "pytest", *OPTIONS, *deselected, *tests]
        environment = {**os.environ, **threads, "PYTHONPATH": str(self.folder / "src")}
        how = {"env": environment, "cwd": self.folder, "timeout": seconds, "text": True}
        try:
            done = subprocess.run(command, **how, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode in (0, 5):  # 5: there was none
            return None
        failed = re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", done.stdout, re.M)
        ends = r"PASSED.*|SKIPPED.*|XFAIL.*|\+{5,} Timeout.*"
        begun = re.findall(rf"^(tests/.+?::.+?) *(?:{ends})?$", done.stdout, re.M)
        return (failed or begun[-1:] or ["no test could begin"])[0]  # the last did not end

    def killed_by(self, fault, text, stages, seconds_of_others=None):
        """Return the first test that fails with a fault and passes without; None if none does."""
        path = self.folder / "src" / fault.file
        kept = [path, *path.parent.glob(f"__pycache__/{path.stem}.*")]  # what is compiled as well
        for place, tests in enumerate(stages):
            seconds = seconds_of_others if place == len(stages) - 1 else None
            while tests:
                with tempfile.TemporaryDirectory() as aside:
                    copies = [(shutil.copy2(file, aside), file) for file in kept]
                    path.write_bytes(text)
                    failed = self.run(tests, seconds)
                    for saved, file in copies:
                        shutil.copy2(saved, file)
                if failed is None:
                    break
                if "::" not in failed or failed in self.passes or not self.run([failed]):
                    self.passes.add(failed)
                    return failed
                if failed in self.broken:
                    raise RuntimeError(f"{failed} cannot be left out")
                self.broken.add(failed)
        return None


def table(samples, judged):
    """Return how many faults of each room were killed, and all survivors."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        equivalent = {Fault(*row[:4]) for row in csv.reader(file)}
    rows = []
    for room, sample in [*samples.items(), ("all", list(itertools.chain(*samples.values())))]:
        tried = [fault for fault, _ in sample if fault in judged]
        counted = [fault for fault in tried if judged[fault] or fault not in equivalent]
        survivors = [fault for fault in counted if not judged[fault]]
        n, k = len(counted), len(counted) - len(survivors)
        low, high = binomtest(k, n).proportion_ci(method="exact") if n else (0.0, 1.0)
        rate = f"{k / max(n, 1):.0%} [{low:.0%}, {high:.0%}]"
        rows.append((room, len(tried), len(tried) - n, k, len(survivors), rate))
    names = ["room", "tried", "equivalent", "killed", "survived", "killed of the others (95 %)"]
    return markdown(pd.DataFrame(rows, columns=names)), survivors


def main():
    """Draw, plant, run, and print what was killed."""
    files = {}
    for file in sorted(SOURCE.glob("privclust*/*/**/*.py")):
        package, room, *_ = file.relative_to(SOURCE).parts
        if package != "privclust_papers":
            files.setdefault(f"{package}/{room}", []).append(file)
    files["verdicts"] = [SOURCE / f"privclust_papers/report/{name}.py" for name in VERDICTS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="*", default=[*files], choices=files, metavar="ROOM")
    parser.add_argument("--each", type=int, default=10, help="faults of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=float("inf"), help="no fault begins later")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the tests of other rooms")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    how = parser.parse_args()
    samples = {room: drawn(files[room], how.each, how.seed) for room in how.rooms}
    log = ROOT / f"benchmarks/out/mutants_{how.seed}.jsonl"
    log.parent.mkdir(exist_ok=True)
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    judged = {Fault(*line["fault"]): line["killed_by"] for line in lines}
    done = {fault for fault, test in judged.items() if test or not how.again}
    hours, begin, suite = sum(line["cpu_hours"] for line in lines), time.monotonic(), Suite()
    with tempfile.TemporaryDirectory() as folder, log.open("a", encoding="utf-8") as file:
        copy = Copy(Path(folder))
        in_turn = filter(None, itertools.chain(*itertools.zip_longest(*samples.values())))
        for fault, text in in_turn:
            if fault in done or time.monotonic() - begin > 3600.0 * how.hours:
                continue
            before = sum(os.times()[2:4])
            stages = suite.stages(fault.file)
            judged[fault] = copy.killed_by(fault, text, stages, 60.0 * how.minutes)
            spent = (sum(os.times()[2:4]) - before) / 3600.0
            hours += spent
            line = {"fault": fault, "killed_by": judged[fault], "cpu_hours": spent}
            print(json.dumps(line), file=file, flush=True)
            print(*fault, judged[fault] or "SURVIVED", sep="\n  ", file=sys.stderr, flush=True)
    counts, survivors = table(samples, judged)
    print(counts, f"\n{hours:.2f} CPU hours; survivors:", *survivors, sep="\n")


if __name__ == "__main__":
    main()
