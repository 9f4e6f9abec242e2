import numpy as np

from privclust.decoding import decode
from privclust.sketches import Sketch, draw_frequencies, release

rng = np.random.default_rng(0)
towns = np.array([[-4.0, 0.0], [0.0, 3.0], [4.0, -2.0]])
days = [rng.normal(np.repeat(towns, 3_000, axis=0), 0.7) for _ in range(2)]

# frequencies are public and the same on all devices; 4 x 0.7^2 is for clusters of that spread
frequencies = draw_frequencies(2, 100, variance=2.0, random_state=0)
released = []
for seed, rows in enumerate(days):
    # the seeds repeat this page; leave random_state out for a release
    day = Sketch.of(rows, frequencies)
    released.append(release(day, epsilon=0.5, delta=1e-6, random_state=seed))
merged = released[0] + released[1]
decoded = decode(merged, 3, bounds=(-10.0, 10.0), random_state=0)
print(f"{len(merged.sums)} sums of {merged.n_samples} records")
print(decoded.centers.round(2))
print(merged.guarantee)

# %% picture
import matplotlib.pyplot as plt

exact = Sketch.of(np.concatenate(days), frequencies)
figure, (left, right) = plt.subplots(1, 2)
left.scatter(exact.values.real, exact.values.imag, s=8, c="#9aa5b1", label="exact")
left.scatter(merged.values.real, merged.values.imag, s=8, c="#b5361c", label="released")
left.set(title="the sketch: one point a frequency", xlabel="real part", ylabel="imaginary part")
left.legend()
right.scatter(*days[0][::10].T, s=3, c="#9aa5b1")
right.scatter(*decoded.centers.T, marker="x", s=80, c="#b5361c")
right.set(title="what is decoded from it", aspect="equal")
