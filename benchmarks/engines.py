"""Speed of sketching tables where they lie, against the kernel on an array in memory.

Run: ``OMP_NUM_THREADS=1 python benchmarks/engines.py``, with the engines that are to be measured
installed; others are left out. d = 10 features, m = 1000 frequencies, eight files
of Parquet in row groups of 2^17 rows. ``--rows`` is how many, ``--large`` how many of the run that
tests the model; the files take 80 bytes a row and are written to a scratch folder. ``--into
docs/big_data.md`` writes the tables there, between their marks.

A speed is rows per second of CPU: on a busy machine that is what a core can do. Sources take turns,
after one that compiles; what is printed is the median of turns, and of their ratios to the kernel's
speed in the same turn. The sums of all are compared, and must be the same bytes.

Peak memory is that of a process that sketches the files and does nothing else (Linux).

The model of a run by jobs: a job takes its start and its rows at the speed of Parquet on one
thread. It is tested on the large run, and says what 10^9 rows take.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from scratch import markdown, write_into
from sketch import N_FEATURES, N_FREQUENCIES, records

from privclust.sketches import Sketch, draw_frequencies

FREQUENCIES = draw_frequencies(N_FEATURES, N_FREQUENCIES, variance=4.0, random_state=0)
NAMES = [f"x{i}" for i in range(N_FEATURES)]
N_FILES, GROUP_ROWS = 8, 2**17
BILLION, JOB_ROWS = 10**9, 10**7
PEAK = """
import resource, sys
from privclust.sketches import Sketch, draw_frequencies
frequencies = draw_frequencies(10, 1000, variance=4.0, random_state=0)
Sketch.of_table(sys.argv[1], frequencies, n_threads=int(sys.argv[2]))
usage = resource.getrusage(resource.RUSAGE_SELF)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(float(peak.split()[1]) / 1024, usage.ru_utime + usage.ru_stime)
"""


def write(folder, n_rows, dtype):
    """Write records as files, one in memory at a time."""
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(n_rows), N_FILES)):
        rows = records(len(part), seed=number).astype(dtype)
        table = pa.table(dict(zip(NAMES, rows.T, strict=True)))
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=GROUP_ROWS)
    return folder


def in_memory(folder):
    """Return the records of a folder as one array."""
    return np.ascontiguousarray(parquet.read_table(folder).to_pandas().to_numpy())


def has(*modules):
    """Whether modules are installed."""
    return all(importlib.util.find_spec(name) is not None for name in modules)


def sources(folder, short):
    """Return name -> (its kernel, function that sketches) of what there is to measure."""
    double, single = in_memory(folder), in_memory(short)
    table = parquet.read_table(folder)

    def of_table(source, n_threads=1):
        return lambda: Sketch.of_table(source(), FREQUENCIES, n_threads=n_threads)

    memory, memory_32 = "an array in memory, float64", "an array in memory, float32"
    methods = {
        memory: (memory, lambda: Sketch.of(double, FREQUENCIES)),
        "Parquet, float64": (memory, of_table(lambda: folder)),
        "Parquet, float64, 2 threads": (memory, of_table(lambda: folder, 2)),
        memory_32: (memory_32, lambda: Sketch.of(single, FREQUENCIES)),
        "Parquet, float32": (memory_32, of_table(lambda: short)),
        "table of Arrow in memory": (memory, of_table(lambda: table)),
    }
    if has("polars"):
        import polars

        methods["Polars, lazy, from Parquet"] = (
            memory,
            of_table(lambda: polars.scan_parquet(folder)),
        )
    if has("duckdb"):
        import duckdb

        query = f"select * from '{folder}/*.parquet'"
        methods["DuckDB, from Parquet"] = memory, of_table(lambda: duckdb.sql(query))
    return methods


def speeds(methods, n_rows, turns):
    """Return a table of rows per CPU second and of parts of the kernel's."""
    rates = {name: [] for name in methods}
    states = {}
    for turn in range(turns + 1):
        for name, (kernel, function) in methods.items():
            cpu = time.process_time()
            sketch = function()
            cpu = time.process_time() - cpu
            state = {key: array.tobytes() for key, array in sketch.exact.items()}
            if states.setdefault(kernel, state) != state:
                raise SystemExit(f"{name}: other bytes than {kernel}")
            if turn:
                rates[name].append(n_rows / cpu)
    rows = []
    for name, (kernel, _) in methods.items():
        ours, base = np.array(rates[name]), np.array(rates[kernel])
        rows.append((name, float(np.median(ours)), f"{np.median(ours / base):.0%}"))
    header = ["from", "rows per second and core", "speed relative to the kernel"]
    return pd.DataFrame(rows, columns=header)


def alone(folder, n_threads=1):
    """Return peak memory in MB and CPU seconds of a process that sketches a folder."""
    command = [sys.executable, "-c", PEAK, str(folder), str(n_threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak, cpu = done.stdout.split()
    return float(peak), float(cpu)


def model(folder, rate, n_rows, n_large):
    """Return the table of processes of their own, and what follows for 10^9 rows."""
    with tempfile.TemporaryDirectory() as scratch:
        tiny = write(Path(scratch) / "tiny", 8, np.float64)
        _, start = alone(tiny)
        large = write(Path(scratch) / "large", n_large, np.float64)
        runs = [(8, 1, *alone(tiny)), (n_rows, 1, *alone(folder))]
        runs += [(n_large, n_threads, *alone(large, n_threads)) for n_threads in (1, 2)]
    rows = [(f"{n:,}", threads, peak, cpu, start + n / rate) for n, threads, peak, cpu in runs]
    header = ["rows", "threads", "peak memory, MB", "CPU seconds", "predicted"]
    hours = (BILLION / JOB_ROWS * start + BILLION / rate) / 3600
    text = (
        f"The model: a job takes {start:.1f} CPU seconds to start, and its rows at "
        f"{rate:,.0f} a second. For 10^9 rows in {BILLION // JOB_ROWS} jobs that is {hours:.2f} "
        "hours of one core: an extrapolation, not a measurement."
    )
    return pd.DataFrame(rows, columns=header), text


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--large", type=int, default=10**7)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = write(Path(scratch) / "double", args.rows, np.float64)
        short = write(Path(scratch) / "single", args.rows, np.float32)
        table = speeds(sources(folder, short), args.rows, args.turns)
        name = "Parquet, float64"
        rate = float(table.set_index("from").loc[name, "rows per second and core"])
        runs, text = model(folder, rate, args.rows, args.large)
    for name, content in (
        ("speeds of engines", markdown(table)),
        ("runs of processes", f"{markdown(runs)}\n\n{text}"),
    ):
        print(content, end="\n\n")
        if args.into is not None:
            write_into(args.into, name, content)


if __name__ == "__main__":
    main()
