"""Private image retrieval between two processes, over HTTP on this machine.

A server process has a gallery. A client, this process, has a private image's features. Both have
the same public, labelled set. The client prints everything that it sends.

    python examples/private_retrieval.py --epsilon 5
    python examples/private_retrieval.py --variant paper --epsilon 0.1

The features are made up: directions of classes with noise about them. Put those of your own images
in their place (arrays of one row an image).
"""

import argparse
import json
import multiprocessing
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np

from privclust.embedding import Message, PrivateMail, RetrievalClient, RetrievalServer

N_CLASSES, N_FEATURES = 10, 64
LONGEST = 10_000_000  # bytes of a message that the server reads


def made_up_images(n, seed):
    """Return features and labels of n images; the classes are the same for every seed."""
    directions = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))
    rng = np.random.default_rng([1, seed])
    y = np.arange(n) % N_CLASSES
    return directions[y] + 0.7 * rng.normal(size=(n, N_FEATURES)), y


def serve(connection, model, n_public, n_gallery):
    """Answer messages until the process is ended; tell the port first."""
    server = RetrievalServer(model, *made_up_images(n_public, 1), *made_up_images(n_gallery, 2))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                length = int(self.headers.get("Content-Length", 0))
                if not 0 <= length <= LONGEST:
                    raise ValueError(f"message: {length} bytes, at most {LONGEST} are read")
                message = Message.from_json(self.rfile.read(length))
                status, body = 200, json.dumps(server.answer(message).tolist())
            except ValueError as error:
                status, body = 400, json.dumps({"error": str(error)})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments):
            """Keep the terminal for the client."""

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
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
    parser.add_argument("--variant", choices=["sound", "paper", "code"], default="sound")
    parser.add_argument("--epsilon", type=float, default=5.0, help="budget of a query, in nats")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--seed", type=int, help="for a repeatable run, which is not for release")
    return parser.parse_args()


def main():
    arguments = parsed_arguments()
    n_public, n_gallery, k = 200, 500, 3
    public, gallery_labels = made_up_images(n_public, 1), made_up_images(n_gallery, 2)[1]
    model = PrivateMail(
        variant=arguments.variant, epsilon=arguments.epsilon, random_state=arguments.seed
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
            message = client.ask(x, None if arguments.variant == "sound" else int(label), k=k)
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
