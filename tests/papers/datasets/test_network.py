"""Giving up quickly: names that do not resolve, connections that are dropped, proxies."""

import socket
import time
import zipfile

import pytest

from privclust_papers.datasets.network import download, unreachable


@pytest.fixture
def deaf_port():
    """A port whose queue is full: the system drops further connections without a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        yield listener.getsockname()[1]
        for client in waiting:
            client.close()


def test_server_that_answers(server):
    assert unreachable([f"{server.url}/good"], 1.0) == {}


def test_a_download_needs_no_standard_error(server, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    download(f"{server.url}/good", tmp_path / "good.zip", (1.0, 1.0))
    assert zipfile.is_zipfile(tmp_path / "good.zip")


def test_refused():
    assert unreachable(["http://127.0.0.1:9/"], 1.0) == {
        "http://127.0.0.1:9/": "127.0.0.1 refuses the connection"
    }


def test_silently_dropped(deaf_port):
    start = time.monotonic()
    (reason,) = unreachable([f"http://127.0.0.1:{deaf_port}/"], 0.3).values()
    assert reason == "127.0.0.1 does not answer within 0.3 s"
    assert time.monotonic() - start < 1.0


def test_name_that_does_not_resolve(monkeypatch):
    def fail(*args, **kwargs):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    (reason,) = unreachable(["https://data.invalid/x"], 1.0).values()
    assert reason == "the name data.invalid cannot be resolved (is there a network?)"


def test_slow_name_servers_hold_up_nothing(monkeypatch):
    def hang(*args, **kwargs):
        time.sleep(2.0)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    start = time.monotonic()
    urls = ["https://one.invalid/x", "https://two.invalid/x", "http://three.invalid/x"]
    assert list(unreachable(urls, 0.3)) == urls
    assert time.monotonic() - start < 1.0


def test_name_that_is_no_name():
    (reason,) = unreachable([f"http://{'a' * 70}.invalid/"], 1.0).values()
    assert "cannot be re" in reason


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_behind_a_proxy_the_proxy_must_answer(monkeypatch, server, scheme):
    monkeypatch.setenv("http_proxy", scheme + server.url.removeprefix("http://"))
    assert unreachable(["http://data.invalid/x"], 1.0) == {}
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    (reason,) = unreachable(["http://data.invalid/x"], 1.0).values()
    assert reason == "127.0.0.1 refuses the connection"
