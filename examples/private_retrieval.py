"""Private image retrieval between two processes, over HTTP on this machine.

A server process has a gallery. A client, this process, has a private image's features. Both have
the same public, labelled set. The client prints everything that it sends.

    python examples/private_retrieval.py --epsilon 5
    python examples/private_retrieval.py --variant paper --epsilon 0.1

The features are made up: directions of classes with noise about them. Put those of your own images
in their place (arrays of one row an image).

The server answers clients side by side, each in a thread and within a time limit: who is silent,
sends byte by byte or asks for much holds up nobody else. Beyond a number of clients at once, more
are turned away. It listens on this machine alone, in plain text and to anybody there: a service for
others needs TLS and a check of who asks in front of it.
"""

import argparse
import json
import multiprocessing
import socket
import threading
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from privclust.embedding import Message, PrivateMail, RetrievalClient, RetrievalServer

N_CLASSES, N_FEATURES = 10, 64
LONGEST = 10_000_000  # bytes of a message that the server reads
MOST_NEIGHBOURS = 1_000_000  # of all queries of a message together
SECONDS = 10.0  # from when a client connects to when it has its reply
MOST_CLIENTS = 64  # at once


def made_up_images(n, seed):
    """Return features and labels of n images; the classes are the same for every seed."""
    directions = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))
    rng = np.random.default_rng([1, seed])
    y = np.arange(n) % N_CLASSES
    return directions[y] + 0.7 * rng.normal(size=(n, N_FEATURES)), y


class Handler(BaseHTTPRequestHandler):
    """One client: a message comes, neighbours go."""

    def setup(self):
        """Cut the connection when its time is over, whoever waits for whom."""
        self.clock = threading.Timer(self.server.seconds, self.cut)
        self.clock.daemon = True
        self.clock.start()
        super().setup()

    def finish(self):
        self.clock.cancel()
        with suppress(OSError):
            super().finish()

    def cut(self):
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", 0))
            if not 0 <= length <= LONGEST:
                raise ValueError(f"message: {length} bytes, at most {LONGEST} are read")
            message = Message.from_json(self.rfile.read(length))
            if message.k * len(message.queries) > MOST_NEIGHBOURS:
                raise ValueError(f"message: more than {MOST_NEIGHBOURS} neighbours are asked for")
            status, body = 200, json.dumps(self.server.retrieval.answer(message).tolist())
        except ValueError as error:
            status, body = 400, json.dumps({"error": str(error)})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        """Keep the terminal for the client."""


class Service(ThreadingHTTPServer):
    """Answers for a `RetrievalServer` on this machine, each client in a thread of its own."""

    daemon_threads = True
    request_queue_size = MOST_CLIENTS

    def __init__(self, retrieval, seconds=SECONDS):
        super().__init__(("127.0.0.1", 0), Handler)
        self.retrieval, self.seconds = retrieval, seconds
        self.free = threading.BoundedSemaphore(MOST_CLIENTS)

    def process_request(self, request, client_address):
        """Start a thread for a client, or turn it away."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request, client_address):
        """Whoever hangs up has no reply; nobody else is concerned."""


def serve(connection, model, n_public, n_gallery):
    """Answer messages until the process is ended; tell the port first."""
    server = RetrievalServer(model, *made_up_images(n_public, 1), *made_up_images(n_gallery, 2))
    with Service(server) as http:
        connection.send(http.server_port)
        http.serve_forever()


def post(port, message):
    """Send a message, return the server's reply."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/", data=message.to_json().encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variant", choices=["corrected", "paper", "code"], default="corrected")
    parser.add_argument("--epsilon", type=float, default=5.0, help="budget of a query, in nats")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--seed", type=int, help="for a repeatable run, which is not for release")
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    n_public, n_gallery, k = 200, 500, 3
    public, gallery_labels = made_up_images(n_public, 1), made_up_images(n_gallery, 2)[1]
    model = PrivateMail(
        variant=arguments.variant,
        obfuscate=arguments.variant == "paper",  # dummies, which the released code does not have
        epsilon=arguments.epsilon,
        random_state=arguments.seed,
    )
    client = RetrievalClient(model, *public)
    print(client.model_.guarantee_)

    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there, model, n_public, n_gallery), daemon=True)
    process.start()
    try:
        if not here.poll(120):
            raise SystemExit("the server did not start within two minutes")
        port = here.recv()
        X, y = made_up_images(arguments.queries, 3)
        hits = 0
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            message = client.ask(x, None if arguments.variant == "corrected" else int(label), k=k)
            reply = client.read(np.array(post(port, message)))
            hits += bool((gallery_labels[reply] == label).any())
            if i == 0:
                print(f"\nwhat leaves the client:\n{message}")
                print(f"what comes back: gallery images {reply.tolist()}")
        print(f"\nRecall@{k} of {len(X)} queries: {hits / len(X):.2f} (chance {k / N_CLASSES:.2f})")
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
