"""Attacks on what is published: archives of runs, names, downloads, and an example's server."""

import contextlib
import importlib.util
import re
import socket
import threading
import time
import urllib.error
import zipfile
from pathlib import Path

import numpy as np
import pytest

from privclust.embedding import Message, PrivateMail, RetrievalClient, RetrievalServer
from privclust_papers.datasets.registry import load_datasets
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.plan import Plan
from privclust_papers.report.archive import write_archive
from privclust_papers.report.run_records import Job
from privclust_papers.settings.config import load_yaml

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
NAMES = (
    "abc",
    "0" * 64,
    "0" * 32,
    "a.zip",
    "package.module.name",
    "https://a.b/c",
    "x.npz",
    "column=value",
)


def patterns(schema):
    """All patterns of a schema."""
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts if isinstance(schema, dict | list) else ():
        yield from patterns(part)
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]


@pytest.mark.attack(
    claim="A name consists of letters, digits and underscores.",
    before="17 of 17 patterns accepted a name that ends in a line break, which then appears in "
    "paths.",
    now="No pattern of any schema accepts one.",
)
@pytest.mark.parametrize("schema", sorted(path.name for path in SCHEMAS.glob("*.yaml")))
def test_no_name_ends_in_a_line_break(schema):
    for pattern in patterns(load_yaml(SCHEMAS / schema)):
        allowed = [name for name in NAMES if re.search(pattern, name)]
        assert allowed, pattern
        assert not [name for name in allowed if re.search(pattern, name + "\n")], pattern


@pytest.mark.attack(
    claim="The content of a download is verified.",
    before="Gowalla and CUB-200-2011 were checked only by MD5, for which collisions can be made.",
    now="CUB-200-2011 is checked by SHA-256. Gowalla is still checked only by MD5, since no other "
    "checksum is known; the configuration names it.",
)
def test_a_download_checked_only_by_md5_is_named():
    path = ROOT / "config" / "datasets.yaml"
    datasets = load_datasets(path, SCHEMAS / "datasets.schema.yaml")
    weak = {n for n, d in datasets.items() for s in d.sources if s.md5 and not s.sha256}
    strong = {n for n, d in datasets.items() if d.content_sha256}
    assert weak - strong == {"gowalla"}
    assert "no SHA-256 of it is known" in path.read_text(encoding="utf-8")


PAGE = "results/quick/index.html"
METRICS = "results/quick/p/e/metrics.h5"
TOP = {
    **dict.fromkeys(("LICENSE", "README.md", "requirements.lock"), "text\n"),
    "workflow/scripts/index.py": "pass\n",
    "pyproject.toml": '[project]\nname = "small"\nversion = "1"\nlicense = "MIT"\n'
    'authors = [{name = "Somebody"}]\n',
    "workflow/Snakefile": "rule all:\n",
    "src/privclust/x.py": "pass\n",
    "workflow/scripts/evaluate.py": "pass\n",
    "config/config.yaml": "effort: quick\n",
    PAGE: "<p>done</p>\n",
}
INTRUDERS = (
    "config/credentials.json",
    "config/credentials.yaml",
    "config/papers/ckm/rows.csv",
    "workflow/profiles/slurm/token.txt",
    "workflow/secrets.yaml",
    "src/privclust_papers/report/page/key/pem",
    "src/privclust/account.json",
)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The files of an archived run, in whose folders others lie."""
    monkeypatch.chdir(tmp_path)
    for name, text in (TOP | dict.fromkeys(INTRUDERS, "token: hunter2\n")).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path(METRICS).parent.mkdir(parents=True)
    artefacts.write(METRICS, "metrics", {"X": np.arange(4.0)}, {})
    jobs = [Job("evaluate", (), (METRICS,), 3.0, 4.0), Job("index", (METRICS,), (PAGE,), 4.0, 5.0)]
    papers = {"p": {"title": "A paper", "citation": "none", "file": "none/paper.yaml"}}
    plan = Plan("quick", None, True, {}, {}, papers, {}, {})
    config = {"effort": "quick", "seed": 1, "substitutes": True, "mirror": None}
    write_archive("run.crate.zip", plan, config, jobs)
    with zipfile.ZipFile("run.crate.zip") as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.attack(
    claim="An archive contains the project's files, and no other files from its folders.",
    before="7 of 7 files with a token in config/, workflow/ or src/ were archived.",
    now="None of 7: the files are declared, with or without git.",
)
def test_a_file_with_credentials_is_not_archived(published):
    assert not set(INTRUDERS) & published.keys()
    assert not any(b"hunter2" in content for content in published.values())
    assert set(TOP) <= published.keys()


@pytest.mark.attack(
    claim="The page on data of one's own names the results that are not private.",
    before="docs/own.md named only bounds that would leak, not exact scores or seeds.",
    now="It says that errors on the exact data are not private, and neither are seeded fits.",
)
def test_the_page_says_that_results_of_own_data_are_not_private():
    text = " ".join((ROOT / "docs/own.md").read_text(encoding="utf-8").split())
    assert "The output is not private" in text
    for reason in ("on the exact data without noise", "seeds"):
        assert reason in text


def example():
    """The module of the example's server."""
    path = ROOT / "examples" / "private_retrieval.py"
    spec = importlib.util.spec_from_file_location("private_retrieval", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def service(module, retrieval, seconds):
    """The example's server in a thread; its port."""
    with module.Service(retrieval, seconds) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield http.server_port
        finally:
            http.shutdown()
            thread.join()


def gallery(n=500):
    """A retrieval server and one message for it."""
    y = np.arange(60) % 5
    X = np.eye(5, 8)[y] + 0.1 * np.random.default_rng(0).normal(size=(60, 8))
    model = PrivateMail(random_state=0)
    server = RetrievalServer(model, X, y, np.tile(X, (n // 60 + 1, 1))[:n])
    return server, RetrievalClient(model, X, y).ask(X[0], k=3)


def until_closed(client, within):
    """Seconds until the server closes a connection, which must be before `within`."""
    client.settimeout(within)
    start = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while client.recv(4096):
            pass
    return time.monotonic() - start


@pytest.mark.attack(
    claim="The example's server answers clients at the same time, within a time limit.",
    before="While one client was connected and silent, no other had an answer within 5 s.",
    now="Others are answered meanwhile. A client that is silent, or sends single bytes, is "
    "disconnected.",
)
def test_a_silent_client_blocks_nobody():
    module = example()
    retrieval, message = gallery()
    expected = retrieval.answer(message).tolist()
    with service(module, retrieval, seconds=0.6) as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        clients[1].sendall(b"POST / HTTP/1.0\r\nContent-Length: 100\r\n\r\n{")
        clients[2].sendall(b"POST / HT")
        start = time.monotonic()
        assert module.post(port, message) == expected
        assert time.monotonic() - start < 0.5  # none of the five has been cut off by then

        def drip():
            with contextlib.suppress(OSError):
                for _ in range(100):
                    clients[3].sendall(b"P")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        assert all(until_closed(client, within=5.0) < 5.0 for client in clients)
        for client in clients:
            client.close()
        assert module.post(port, message) == expected


@pytest.mark.attack(
    claim="A message of 20,000 queries delays no other client.",
    before="Others waited until all of it was answered.",
    now="Others are answered while it is processed.",
)
def test_a_long_message_blocks_nobody():
    module = example()
    retrieval, message = gallery()
    waiting, answered = threading.Event(), threading.Event()

    class Slow:
        """Works on a long message until another one was answered, as a slow machine would."""

        def answer(self, message):
            if len(message.queries) > 1:
                waiting.set()
                assert answered.wait(10.0)
            return retrieval.answer(message)

    long = Message(np.repeat(message.queries, 20_000, axis=0), None, 3)
    replies = []
    with service(module, Slow(), seconds=20.0) as port:
        worker = threading.Thread(target=lambda: replies.append(module.post(port, long)))
        worker.start()
        assert waiting.wait(10.0)
        assert module.post(port, message) == retrieval.answer(message).tolist()
        answered.set()
        worker.join(20.0)
        assert len(replies[0]) == 20_000
        too_much = Message(np.repeat(message.queries, 20_000, axis=0), None, 400)
        with pytest.raises(urllib.error.HTTPError, match="400"):
            module.post(port, too_much)


@pytest.mark.attack(
    claim="The example's server limits the number of clients.",
    before="No limit was needed, because clients were served one after the other.",
    now="At most 64 at once; more are turned away. A place becomes free when its time limit is "
    "over.",
)
def test_more_clients_than_the_limit_are_turned_away():
    module = example()
    retrieval, message = gallery()
    with service(module, retrieval, seconds=0.6) as port:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(64)]
        late = socket.create_connection(("127.0.0.1", port))
        assert until_closed(late, within=5.0) < 5.0
        assert all(until_closed(client, within=5.0) < 5.0 for client in silent)
        for client in (*silent, late):
            client.close()
        reply = None
        for _ in range(50):  # the last of the places is free a moment after its client is gone
            with contextlib.suppress(OSError):
                reply = module.post(port, message)
                break
            time.sleep(0.05)
        assert reply == retrieval.answer(message).tolist()
