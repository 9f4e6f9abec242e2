"""CPU seconds and memory of reading CUB-200-2011, Cars196 and Gowalla, as large as they are.

Run: ``nice python benchmarks/official_files.py FOLDER [SHARE]``; FOLDER gets each file in turn, up
to 4 GB, and loses it again. The files are generated in the layout of the official ones, with as
many images or lines, as many bytes, and what is odd in such sets; SHARE = 0.01 makes a hundredth of
each. Printed of each: how large the file is, how large the arrays are that it becomes, and the CPU
seconds and the most memory of a process that checks and reads it as the workflow does.
"""

from __future__ import annotations

import gzip
import io
import resource
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy.io import savemat

N_BIRDS, N_CARS, N_CHECKINS = 11_788, (8_144, 8_041), 6_442_890
N_LOCATIONS = 1_280_969
_BYTES = {"cub200": 96_000, "cars196": 120_000}  # of an image, on average
_KINDS = 40  # images that are drawn; the others are these with another comment


def jpegs(n_images: int, n_bytes: int, seed: int = 0) -> Iterator[bytes]:
    """Yield photographs of several sizes and modes: RGB, some grey, CMYK and progressive ones.

    Each has a comment of its own, and as many bytes on average as asked for.
    """
    from PIL import Image

    rng = np.random.default_rng(seed)
    drawn = []
    for number in range(min(_KINDS, n_images)):
        size = ((500, 375), (375, 500), (500, 333), (120, 90))[number % 4]
        mode = {5: "L", 9: "CMYK"}.get(number, "RGB")
        smooth = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
        buffer = io.BytesIO()
        smooth.resize(size).convert(mode).save(buffer, "JPEG", progressive=number % 7 == 3)
        drawn.append(buffer.getvalue())
    filler = rng.bytes(60_000)
    for number in range(n_images):
        image = drawn[number % len(drawn)]
        comment = b"%d " % number
        wanted = max(0, int(n_bytes * rng.uniform(0.5, 1.5)) - len(image))
        segments = []
        while True:  # comments of at most 65,533 bytes each, behind the start of the image
            part = comment + filler[: min(wanted, 60_000)]
            segments.append(b"\xff\xfe" + (len(part) + 2).to_bytes(2, "big") + part)
            wanted -= 60_000
            if wanted <= 0:
                break
        yield image[:2] + b"".join(segments) + image[2:]


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file to an archive."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def write_cub200(path: Path, share: float = 1.0) -> int:
    """Write ``CUB_200_2011.tgz`` and return how many images it has."""
    n_images = round(share * N_BIRDS)
    classes = [f"{i:03d}.Bird_number_{i}" for i in range(1, 201)]
    y = np.sort(np.arange(n_images) % 200)
    names = [f"{classes[label]}/Bird_{i:04d}_{7 * i}.jpg" for i, label in enumerate(y)]
    tables = {
        "images.txt": names,
        "image_class_labels.txt": [label + 1 for label in y],
        "train_test_split.txt": [i % 2 for i in range(n_images)],
        "bounding_boxes.txt": [f"{10 + i % 7}.0 5.0 {60 + i % 40}.0 70.0" for i in range(n_images)],
        "classes.txt": classes,
        "parts/part_locs.txt": [f"{part} 0.0 0.0 0" for _ in names for part in range(1, 16)],
        "attributes/image_attribute_labels.txt": ["1 0 3 27.7"] * (312 * n_images // 4),
    }
    order = np.random.default_rng(1).permutation(n_images)  # an archive's is not that of the list
    with tarfile.open(path, "w:gz", compresslevel=0) as archive:
        add(archive, "attributes.txt", b"1 has_bill_shape::curved_(up_or_down)\n")
        add(archive, "CUB_200_2011/README", b"about\n")
        for number, content in zip(order, jpegs(n_images, _BYTES["cub200"]), strict=True):
            if number == 3:  # of a Mac that packed it
                add(
                    archive,
                    f"CUB_200_2011/images/{names[number].replace('/', '/._')}",
                    b"\0\5\26\7",
                )
            add(archive, f"CUB_200_2011/images/{names[number]}", content)
        for name, rows in tables.items():
            lines = "".join(f"{i} {row}\n" for i, row in enumerate(rows, start=1))
            add(archive, f"CUB_200_2011/{name}", lines.encode())
    return n_images


def write_cars196(path: Path, share: float = 1.0) -> int:
    """Write an archive of the four official files of Cars196; return how many images they have."""
    n_train, n_test = (round(share * n) for n in N_CARS)
    names = np.empty((1, 196), dtype=object)
    names[0] = [f"Maker Model C/V {i} 2012" for i in range(196)]
    annotations = {
        n: _annotations(n, is_train) for n, is_train in ((n_train, True), (n_test, False))
    }
    kit = io.BytesIO()
    with tarfile.open(fileobj=kit, mode="w:gz") as archive:
        add(archive, "devkit/cars_train_annos.mat", annotations[n_train])
        add(archive, "devkit/cars_meta.mat", _mat(class_names=names))
    with tarfile.open(path, "w") as archive:
        add(archive, "car_devkit.tgz", kit.getvalue())
        for folder, n_images in (("cars_test", n_test), ("cars_train", n_train)):
            part = path.with_name(f"{folder}.tgz")
            with tarfile.open(part, "w:gz", compresslevel=0) as images:
                contents = jpegs(n_images, _BYTES["cars196"], seed=n_images)
                for number, content in enumerate(contents, start=1):
                    add(images, f"{folder}/{number:05d}.jpg", content)
            archive.add(part, part.name)
            part.unlink()
            if folder == "cars_test":
                add(archive, "cars_test_annos_withlabels.mat", annotations[n_test])
    return n_train + n_test


def _annotations(n_images: int, is_train: bool) -> bytes:
    """Return annotations as MATLAB saves them: each number in the smallest type that holds it."""
    kinds = ["bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname"]
    table = np.empty((1, n_images), dtype=[(kind, "O") for kind in kinds])
    for i in range(n_images):
        numbers = (2 + i % 30, 3, 60 + i % 50, 80, 1 + i % 196)
        table[0, i] = (*(np.min_scalar_type(v).type(v) for v in numbers), f"{i + 1:05d}.jpg")
    return _mat(annotations=table)


def _mat(**variables: np.ndarray) -> bytes:
    """Return a MATLAB 5 file."""
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=True)
    return buffer.getvalue()


def write_gowalla(path: Path, share: float = 1.0) -> int:
    """Write ``loc-gowalla_totalCheckins.txt.gz``; return how many distinct places are on the globe.

    Some lines are repeated, some have coordinates that are none, some places have two numbers.
    """
    n_lines, n_places = round(share * N_CHECKINS), round(share * N_LOCATIONS)
    rng = np.random.default_rng(0)
    places = np.unique(rng.uniform((-180, -90), (180, 90), (n_places, 2)).round(10), axis=0)
    texts = [
        f"{latitude:.10f}\t{longitude:.10f}\t{i}" for i, (longitude, latitude) in enumerate(places)
    ]
    odd = ["405.0\t10.0\t1", "41.0\t-180.5\t2", "nan\tnan\t3"]
    visited = np.concatenate(
        [np.arange(len(places)), rng.integers(len(places), size=n_lines - len(places))]
    )
    visited = rng.permutation(visited)
    with gzip.open(path, "wt", compresslevel=1, newline="\n") as file:
        file.writelines(_checkins(visited, texts, odd))
    return len(places)


def _checkins(visited: Iterable[int], texts: list[str], odd: list[str]) -> Iterator[str]:
    """Yield the lines of check-ins."""
    for number, place in enumerate(visited):
        if number % 100_000 == 7:
            yield f"{number // 60}\t2010-10-19T23:55:27Z\t{odd[number // 100_000 % 3]}\n"
        yield f"{number // 60}\t2010-10-19T23:55:27Z\t{texts[place]}\n"


SETS = {
    "cub200": ("CUB_200_2011.tgz", write_cub200),
    "cars196": ("cars196.tar", write_cars196),
    "gowalla": ("loc-gowalla_totalCheckins.txt.gz", write_gowalla),
}


def read(name: str, path: str, n_images: int) -> None:
    """Check and read a file, and print CPU seconds and the most memory of this process."""
    from importlib import import_module

    reader = import_module(f"privclust_papers.datasets.{name}")
    reader.N_IMAGES = n_images
    if name == "cars196":
        reader.content_sha256(path)
    arrays = reader.read(path)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    n_bytes = sum(array.nbytes for array in arrays.values())
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{cpu:6.1f}  {n_bytes / 1e6:9.0f}  {usage.ru_maxrss * 1024 / 1e6:9.0f}", flush=True)


def main() -> None:
    """Print a table."""
    if sys.argv[1] == "--read":
        read(*sys.argv[2:4], int(sys.argv[4]))
        return
    folder, share = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    folder.mkdir(parents=True, exist_ok=True)
    print("set      file MB   CPU s  arrays MB  memory MB")
    for name, (file, write) in SETS.items():
        path = folder / file
        n = write(path, share)
        size = path.stat().st_size / 1e6
        print(f"{name:8s} {size:7.0f}  ", end="", flush=True)
        subprocess.run([sys.executable, __file__, "--read", name, path, str(n)], check=True)
        path.unlink()


if __name__ == "__main__":
    main()
