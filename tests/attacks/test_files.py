"""Attacks by files: sketches that someone else made."""

import json
import os
import time

import h5py
import numpy as np
import pytest

from privclust.core import hdf5
from privclust.core.hdf5 import FileError
from privclust.sketches import Sketch, release

OMEGA = np.random.default_rng(0).standard_normal((2, 5))
X = np.random.default_rng(1).standard_normal((200, 2))


def contents(path):
    """Return the header and the arrays of a file."""
    with h5py.File(path) as file:
        header = json.loads(bytes(file.attrs["header"]))
        arrays = {}
        file.visititems(
            lambda name, item: arrays.update({name: item[()]}) if hasattr(item, "shape") else None
        )
    return header, arrays


def forge(path, header, arrays, more=None):
    """Write any header and arrays, with the digest that fits them, and what else is asked for."""
    text = header if isinstance(header, str) else json.dumps(header)
    digest = hdf5._digest(text, {name: np.asarray(array) for name, array in arrays.items()})
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["header"] = np.bytes_(text.encode())
        file.attrs["digest"] = np.bytes_(digest.encode())
        for name, array in arrays.items():
            file[name] = array
        if more is not None:
            more(file)
    return path


def a_sketch(path, **options):
    """Write a private sketch; return its header and arrays."""
    options = {"epsilon": 1.0, "random_state": 0} | options
    release(Sketch.of(X, OMEGA, n_measurements=4), **options).save(path)
    return contents(path)


@pytest.fixture
def forged(tmp_path):
    """Return a function that adds to an honest private sketch and gives the file's path."""
    header, arrays = a_sketch(tmp_path / "honest.h5")

    def with_more(more):
        return forge(tmp_path / "forged.h5", header, arrays, more)

    assert Sketch.load(with_more(None)).n_samples == 200
    return with_more


@pytest.mark.attack(
    claim="A small file takes little memory.",
    before="4.6 KB were inflated to 4 GB in 37 s.",
    now="Refused because of its shapes, before any array is read.",
)
@pytest.mark.parametrize("name", ["sums", "more"])
def test_a_small_file_that_inflates_to_gigabytes(tmp_path, name):
    header, arrays = a_sketch(tmp_path / "s.h5")
    arrays.pop(name, None)

    def inflate(file):
        file.create_dataset(name, (1 << 29,), "c16", chunks=(1 << 20,), compression="gzip")

    path = forge(tmp_path / "bomb.h5", header, arrays, inflate)
    assert path.stat().st_size < 10_000
    start = time.perf_counter()
    with pytest.raises(FileError, match=r"larger than the file can hold|no array more"):
        Sketch.load(path)
    assert time.perf_counter() - start < 1.0


@pytest.mark.attack(
    claim="An array is no larger than its bytes can hold.",
    before="Arrays were read without a check of their chunks.",
    now="Refused because of the shape of its chunks.",
)
def test_one_number_in_a_chunk_of_gigabytes(forged):
    def huge_chunk(file):
        del file["sums"]
        shape = {"maxshape": (None,), "chunks": (1 << 27,), "compression": "gzip"}
        file.create_dataset("sums", (5,), "c16", **shape)

    with pytest.raises(FileError, match="array sums is larger than the file can hold"):
        Sketch.load(forged(huge_chunk))


def external_link(file):
    file["link"] = h5py.ExternalLink("other.h5", "/secret")


def soft_link(file):
    file["link"] = h5py.SoftLink("/sums")


def second_name(file):
    file["exact/whole"] = file["sums"]


def cycle(file):
    file.create_group("loop")["up"] = file["/"]


def external_storage(file):
    del file["sums"]
    place = [(os.path.join(os.path.dirname(file.filename), "raw.bin"), 0, 80)]
    file.create_dataset("sums", (5,), "c16", external=place)


def pipe_as_storage(file):
    os.mkfifo(os.path.join(os.path.dirname(file.filename), "raw.bin"))
    external_storage(file)


def virtual(file):
    del file["sums"]
    layout = h5py.VirtualLayout((5,), "c16")
    layout[:] = h5py.VirtualSource("honest.h5", "sums", (5,))
    file.create_virtual_dataset("sums", layout)


@pytest.mark.attack(
    claim="Reading a file reads no other file.",
    before="External links, raw files and virtual arrays were opened, and a pipe hung for ever.",
    now="Each is refused by name without being opened.",
)
@pytest.mark.parametrize(
    ("way_out", "reason"),
    [
        (external_link, "link is a link"),
        (soft_link, "link is a link"),
        (second_name, "under two names"),
        (cycle, "under two names"),
        (external_storage, "array sums is kept in other files"),
        (pipe_as_storage, "array sums is kept in other files"),
        (virtual, "array sums is kept in other files"),
    ],
)
def test_ways_out_of_a_file(forged, way_out, reason):
    with pytest.raises(FileError, match=reason):
        Sketch.load(forged(way_out))


@pytest.mark.attack(
    claim="Loading a file ends.",
    before="A pipe named as a sketch waited for a writer for ever.",
    now="Pipes and devices are refused without being opened.",
)
def test_pipes_and_devices_instead_of_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "null.h5").symlink_to("/dev/zero")
    for name in ("pipe.h5", "null.h5"):
        with pytest.raises(FileError, match="is a pipe or a device"):
            Sketch.load(tmp_path / name)


@pytest.mark.attack(
    claim="A sketch contains only its own arrays.",
    before="Arrays of any name and type were read.",
    now="Unknown names, Python text and unknown filters are refused.",
)
def test_arrays_of_other_names_types_and_filters(forged):
    def text(file):
        del file["sums"]
        file.create_dataset("sums", data=["a", "b"], dtype=h5py.string_dtype())

    def scaled(file):
        del file["sums"]
        file.create_dataset("sums", data=np.zeros(5), scaleoffset=3, chunks=(5,))

    for more, reason in (
        (lambda file: file.create_dataset("more", data=1.0), "there should be no array more"),
        (lambda file: file.create_dataset("a/\x1b[2J", data=1.0), r"no array a/\\x1b\[2J"),
        (text, "neither of numbers nor"),
        (scaled, "packed in an unknown way"),
    ):
        with pytest.raises(FileError, match=reason):
            Sketch.load(forged(more))


def changed(header):
    """Yield a header with each entry left out, or of another type and value."""
    others = (None, [], "x", "\x1b[2J", -1, 0, 10**400, 1.5, True, [1], {"a": 1})

    def entries(value, path=()):
        if isinstance(value, dict):
            for key in value:
                yield (*path, key)
                yield from entries(value[key], (*path, key))
        if isinstance(value, list):
            for i in range(len(value)):
                yield (*path, i)
                yield from entries(value[i], (*path, i))

    header["versions"] = {"numpy": "2.0"}  # the others are as this one
    for path in entries(header):
        for other in (..., *others):
            copy = json.loads(json.dumps(header))
            place = copy
            for key in path[:-1]:
                place = place[key]
            if other is ...:
                del place[path[-1]]
            else:
                place[path[-1]] = other
            yield copy


def fuzz(tmp_path, load, header, arrays):
    """Return how many changed headers are refused and taken; others than FileErrors escape."""
    messages, taken = [], 0
    for other in changed(header):
        path = forge(tmp_path / "fuzzed.h5", other, arrays)
        try:
            model = load(path)
        except FileError as error:
            messages.append(str(error))
        else:
            assert "\x1b" not in str(getattr(model, "guarantee", None) or "")
            taken += 1
    assert all(map(str.isprintable, messages))
    return len(messages), taken


@pytest.mark.attack(
    claim="A malformed sketch raises FileError.",
    before="Headers without keys raised KeyError and TypeError. Text and NaN were accepted as the "
    "scale.",
    now="Each entry is left out or changed in 11 ways, and each raises FileError.",
)
@pytest.mark.parametrize(
    "options", [{}, {"delta": 1e-6, "noise": "gaussian", "neighbours": "add_remove"}]
)
def test_headers_of_private_sketches_changed_entry_by_entry(tmp_path, options):
    header, arrays = a_sketch(tmp_path / "s.h5", **options)
    refused, taken = fuzz(tmp_path, Sketch.load, header, arrays)
    assert refused > 300
    assert taken > 10  # such as other names of versions, or a statement that is weaker


@pytest.mark.attack(
    claim="A malformed sketch raises FileError.",
    before="A header without keys raised KeyError.",
    now="Only FileError is raised, for exact and private sketches.",
)
def test_headers_of_exact_sketches_changed_entry_by_entry(tmp_path):
    Sketch.of(X, OMEGA).save(tmp_path / "s.h5")
    refused, _ = fuzz(tmp_path, Sketch.load, *contents(tmp_path / "s.h5"))
    assert refused > 60
    for text in ("", "null", "[1]", "{}", "[" * 5000, '{"schema": NaN}', '{"schema": 1e999}'):
        header, arrays = contents(tmp_path / "s.h5")
        with pytest.raises(FileError):
            Sketch.load(forge(tmp_path / "t.h5", text, arrays))
    for name in arrays:
        for other in (np.array("x", "S"), np.zeros(0), np.full(arrays[name].shape, np.nan)):
            with pytest.raises(FileError):
                Sketch.load(forge(tmp_path / "t.h5", header, arrays | {name: other}))
        rest = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(FileError):
            Sketch.load(forge(tmp_path / "t.h5", header, rest))


@pytest.mark.attack(
    claim="A sketch states the guarantee that its noise gives.",
    before="decode printed '0-differential privacy' for a file with scale 0.",
    now="The guarantee is recomputed from scale, count and relation. A file that states a "
    "stronger guarantee is refused.",
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbours": "add_remove"},
        {"delta": 1e-6, "noise": "gaussian"},
        {"delta": 1e-6, "noise": "laplace", "neighbours": "add_remove"},
    ],
)
def test_a_sketch_that_states_more_than_its_noise_gives(tmp_path, options):
    header, arrays = a_sketch(tmp_path / "s.h5", **options)

    def load(change):
        forgery = json.loads(json.dumps(header))
        change(forgery["parameters"], forgery["parameters"]["guarantee"])
        return Sketch.load(forge(tmp_path / "forged.h5", forgery, arrays))

    def less_noise(parameters, guarantee):
        parameters["noise"]["scale"] *= 0.999

    def smaller_epsilon(parameters, guarantee):
        guarantee["epsilon"] *= 0.999

    def smaller_loss(parameters, guarantee):
        guarantee["releases"][0]["loss"]["rho"] *= 0.999

    def smaller_sensitivity(parameters, guarantee):
        guarantee["releases"][0]["sensitivity"] *= 0.999

    def larger_scale(parameters, guarantee):
        guarantee["releases"][0]["scale"] *= 1.001

    def no_release(parameters, guarantee):
        guarantee["releases"] = []

    def other_measurements(parameters, guarantee):
        parameters["n_measurements"] += 1

    def other_mechanism(parameters, guarantee):
        names = {"laplace": "gaussian", "gaussian": "laplace"}
        parameters["noise"]["mechanism"] = names[parameters["noise"]["mechanism"]]
        parameters["noise"]["scale"] /= 4

    def smaller_delta(parameters, guarantee):
        guarantee["delta"] = 1e-9

    lies = [less_noise, smaller_epsilon, smaller_loss, smaller_sensitivity, larger_scale]
    lies += [no_release, other_measurements]
    lies += [other_mechanism] + [smaller_delta] * (options.get("noise") == "gaussian")
    for lie in lies:
        with pytest.raises(FileError, match=r"less than its guarantee states|definition"):
            load(lie)
    for scale in (0, 0.0, -3.0, 1e-320, 1e-9, 1e300, "x", None):
        with pytest.raises(FileError):
            load(lambda parameters, guarantee, scale=scale: parameters["noise"].update(scale=scale))
    if options.get("neighbours") == "add_remove":
        with pytest.raises(FileError, match="number of records has no noise"):
            load(lambda parameters, guarantee: parameters.update(n_samples=200))
    weaker = load(lambda parameters, guarantee: parameters["noise"].update(scale=1e4))
    assert weaker.noise.scale == 1e4


@pytest.mark.attack(
    claim="A file cannot control the terminal.",
    before="decode printed caveats with escape sequences unchanged.",
    now="They are refused in guarantees and escaped in all messages.",
)
def test_control_characters_in_the_words_of_a_guarantee(tmp_path):
    header, arrays = a_sketch(tmp_path / "s.h5")
    guarantee = header["parameters"]["guarantee"]
    for evil in ("\x1b[31mred", "a\nb", "\x9b2J", "\u202eabc"):
        for change in (
            {"caveats": [evil]},
            {"releases": [guarantee["releases"][0] | {"name": evil}]},
        ):
            forgery = json.loads(json.dumps(header))
            forgery["parameters"]["guarantee"] |= change
            with pytest.raises(FileError) as caught:
                Sketch.load(forge(tmp_path / "forged.h5", forgery, arrays))
            assert evil not in str(caught.value)
            assert str(caught.value).isprintable()
        forgery = header | {"kind": evil}
        with pytest.raises(FileError) as caught:
            Sketch.load(forge(tmp_path / "forged.h5", forgery, arrays))
        assert str(caught.value).isprintable()
