"""What the tests of data sets share: small archives, a server on loopback, the real mirror."""

import io
import json
import os
import socketserver
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from privclust_papers.datasets.fetch import fetch, load, resolve_mirror
from privclust_papers.datasets.hopkins155 import content_sha256, parent_scene
from privclust_papers.datasets.registry import Dataset, Source, Substitute, load_datasets

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def project_datasets():
    return load_datasets(
        ROOT / "config" / "datasets.yaml", ROOT / "workflow" / "schemas" / "datasets.schema.yaml"
    )


@pytest.fixture(scope="session")
def mirror():
    """The mirror directory with the real data; without it the test is skipped."""
    path = resolve_mirror(None, os.environ, ROOT.parent / "shared" / "data")
    if path is None or not (path / "hopkins155" / "Hopkins155.zip").exists():
        pytest.skip("no mirror with hopkins155/Hopkins155.zip: set PRIVCLUST_DATA_MIRROR")
    return path


@pytest.fixture(scope="session")
def published(project_datasets, mirror, tmp_path_factory):
    """Return a function that reads a data set of the mirror; without it the test is skipped."""

    def read(name):
        dataset = project_datasets[name]
        if not (mirror / dataset.sources[0].location).exists():
            pytest.skip(f"no {dataset.sources[0].location} in the mirror")
        folder = tmp_path_factory.mktemp(name)
        fetch(dataset, folder, mirror, allow_substitutes=False)
        arrays, receipt = load(dataset, folder)
        assert receipt.kind == "mirror"
        return arrays

    return read


def truth_bytes(n_motions=2, points=6, frames=5, seed=0, **variables):
    """The bytes of a small ``*_truth.mat``; a variable given as None is left out."""
    from scipy.io import savemat

    x = np.ones((3, points, frames))
    x[:2] = np.random.default_rng(seed).uniform(-1, 1, size=(2, points, frames))
    s = (np.arange(points) % n_motions + 1).astype(np.uint8)[:, None]
    content = {"x": x, "s": s, "points": points, "frames": frames, **variables}
    buffer = io.BytesIO()
    savemat(buffer, {key: value for key, value in content.items() if value is not None})
    return buffer.getvalue()


@pytest.fixture(scope="session")
def make_truth():
    return truth_bytes


@pytest.fixture(scope="session")
def unpack():
    """Return a function that reads the sequences of `hopkins155.pack`."""

    def unpacked(arrays):
        columns = ("name", "family", "split", "n_motions", "substitute")
        sequences = []
        for i in range(len(arrays["name"])):
            fields = {key: arrays[key][i] for key in columns}
            fields = {k: v.decode() if isinstance(v, bytes) else v for k, v in fields.items()}
            own = {key: arrays[f"sequences/{i:03d}/{key}"] for key in ("trajectories", "labels")}
            sequences.append(SimpleNamespace(**fields, **own, parent=parent_scene(fields["name"])))
        return sequences

    return unpacked


@pytest.fixture(scope="session")
def truths():
    two = {f"1R2TC_{i:03d}": truth_bytes(2, seed=i) for i in range(118)}
    three = {f"1R2RCT_{i:03d}": truth_bytes(3, seed=500 + i) for i in range(35)}
    others = {"cars1": truth_bytes(2, seed=900), "arm": truth_bytes(2, seed=901)}
    return {**two, **three, **others, "dancing": truth_bytes(5, points=10)}


def write_zip(path, truths, prefix="", extra=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in truths.items():
            archive.writestr(f"{prefix}{name}/{name}_truth.mat", content)
            archive.writestr(f"{prefix}{name}/description.txt", "a sequence")
        for name, content in extra:
            archive.writestr(name, content)
    return path


@pytest.fixture(scope="session")
def make_zip():
    return write_zip


@pytest.fixture(scope="session")
def small_zip(truths, tmp_path_factory):
    return write_zip(tmp_path_factory.mktemp("zip") / "Hopkins155.zip", truths)


@pytest.fixture
def make_dataset(small_zip):
    """Build the entry of a data set whose content is that of the small archive."""

    def build(*sources, **changes):
        values = {
            "name": "toy",
            "title": "a toy",
            "terms": "none",
            "citation": "nobody",
            "homepage": None,
            "file": "toy.zip",
            "reader": "privclust_papers.datasets.hopkins155.read",
            "content_digest": "privclust_papers.datasets.hopkins155.content_sha256",
            "content_sha256": content_sha256(small_zip),
            "sources": tuple(
                Source("url" if "://" in where else "mirror", where, "a source", sha256)
                for where, sha256 in ((s, None) if isinstance(s, str) else s for s in sources)
            ),
            "substitute": Substitute(
                "privclust_papers.datasets.motion.generate",
                {"seed": 1},
                "generated, not comparable.",
            ),
        }
        return Dataset(**{**values, **changes})

    return build


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture
def server(small_zip):
    """A server on loopback: ``server.url`` + one of /good /short /html /404 /500 /flaky /slow."""
    good = small_zip.read_bytes()
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            status, body, length = 200, good, len(good)
            if self.path == "/404":
                status, body, length = 404, b"no", 2
            elif self.path == "/500" or (self.path == "/flaky" and len(requests) == 1):
                status, body, length = 503, b"later", 5
            elif self.path == "/html":
                body, length = b"<html>Moved</html>", 18
            elif self.path == "/short":  # the connection ends before the promised length
                body = good[: len(good) // 2]
            elif self.path == "/cut":  # half an archive, delivered whole
                body, length = good[: len(good) // 2], len(good) // 2
            elif self.path.startswith(
                "/record/"
            ):  # as Zenodo's, with an MD5 of the path's last part
                entry = {"key": "good", "checksum": self.path.rpartition("/")[2]}
                body = json.dumps({"files": [entry]}).encode()
                length = len(body)
            elif self.path == "/silent":
                time.sleep(1.5)
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.path == "/slow":
                self.wfile.write(body[:1000])
                self.wfile.flush()
                time.sleep(30)
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with _Server(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        running.url = f"http://127.0.0.1:{running.server_address[1]}"
        running.requests = requests
        running.handle_error = lambda *args: None
        yield running
        running.shutdown()
