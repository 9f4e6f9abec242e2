import warnings

import numpy as np

from privclust.embedding import PrivateMail, RetrievalServer
from privclust.privacy import WeakGuaranteeWarning

warnings.simplefilter("ignore", WeakGuaranteeWarning)  # large epsilons promise little: to compare

rng = np.random.default_rng(0)
y = np.arange(400) % 4
X = np.eye(4)[y] + 0.2 * rng.normal(size=(400, 4))
public, gallery, queries = slice(0, 100), slice(100, 300), range(300, 400)

epsilons, shares = [1.0, 3.0, 10.0, 30.0], []
for epsilon in epsilons:
    # random_state=0 repeats this page; leave it out for a release, so that noise has no seed
    model = PrivateMail(epsilon=epsilon, delta=1e-5, random_state=0).fit(X[public], y[public])
    server = RetrievalServer(model, X[public], y[public], X[gallery])
    shares_of_queries = []
    for query in queries:
        released = model.release(X[query : query + 1])  # all that leaves the client
        distances = np.linalg.norm(server.gallery_ - server.locate(released), axis=1)
        answer = np.argsort(distances)[:8]
        shares_of_queries.append((y[gallery][answer] == y[query]).mean())
    shares.append(np.mean(shares_of_queries))
    print(f"epsilon {epsilon} a query: {shares[-1]:.2f} of the answers have the query's class")
print(released)
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.semilogx(epsilons, shares, "o-", color="#b5361c")
axis.axhline(0.25, color="black", linestyle="--", label="by chance")
axis.set(xlabel="epsilon of one query", ylabel="answers of the query's class", ylim=(0.0, 1.05))
axis.legend()
