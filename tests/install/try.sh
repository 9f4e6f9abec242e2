#!/usr/bin/env bash
# Install privclust as strangers would, on other systems, follow the README and run the fast tests there:
#
#   bash tests/install/try.sh forky      a minimal Debian forky, with the Python it has (3.14)
#   bash tests/install/try.sh trixie     a minimal Debian trixie (Python 3.13)
#   bash tests/install/try.sh lowest     the lowest versions that pyproject.toml allows, on Python 3.11
#   bash tests/install/try.sh arm64      on an emulated ARM: digests of kernels, beside those of this machine, and
#                                        the fast tests of exact sums, sketches and kernels
#
# With WHOLE=1, forky and trixie make all figures as well (`make`).
#
# To be run before a release; CI runs none of it. forky and trixie need root and debootstrap, arm64 needs
# debootstrap, qemu-user-static and `make setup`, lowest and arm64 need uv. Each takes 10 to 40 minutes and up to 4 GB
# in the folder that TRY names, by default a new one below /tmp. The output has neither hosts nor
# paths outside of that folder, so that it can be published.
set -euo pipefail
what=${1:?name forky, trixie, lowest or arm64}
clone=$(cd "$(dirname "$0")/../.." && pwd)
folder=${TRY:-$(mktemp -d /tmp/privclust-try-XXXXXX)}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
fast=(-m pytest -q -n 2 -m "not system and not slow" tests/library tests/audit tests/attacks)
[ ! -t 1 ] || echo "in $folder"

# Remove addresses, hosts and paths from lines as they come.
clean() {
  sed -u -E -e "s#$folder#FOLDER#g; s#$clone#CLONE#g" \
    -e 's#(https?|file)://[^ ]*#ADDRESS#g' \
    -e 's#[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.(org|com|net|io|dev|local|internal)\b#HOST#g' \
    -e 's#\b[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?\b#HOST#g' \
    -e "s#(^|[ '\"=(])/(home|tmp|work|opt|mnt|srv|data|usr|etc|var)/[^ '\",:;)]*#\1PATH#g"
}

# The commands of docs/reproduce.md, as a user without anything else gives them.
debian() {
  local root=$folder/$1 packages=ca-certificates,git,make,python3,python3-venv
  debootstrap --variant=minbase --include="$packages" "$1" "$root" "$mirror" "$2"
  cp /etc/resolv.conf "$root/etc/"
  [ ! -f "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$root/etc/ssl/certs/ca-certificates.crt"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  trap "umount '$root/proc' '$root/dev'" EXIT # `root` is gone by then
  git clone --quiet "$clone" "$root/root/privclust"
  inside() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash -c "cd /root/privclust && $1"
  }
  inside "python3 --version"
  inside 'bash tests/install/readme.sh ~/readme'
  if ! inside "make setup"; then # says what is to be installed first
    # A mirror may be a frozen one, older than its lists are valid.
    inside "apt-get update -qq -o Acquire::Check-Valid-Until=false"
    inside "apt-get install -y -qq --no-install-recommends gcc libc6-dev python3-dev"
    inside "make setup"
  fi
  inside ".venv/bin/snakemake --cores 2 ckm_fig2"
  inside ".venv/bin/python ${fast[*]@Q}"
  [ -z "${WHOLE:-}" ] || inside "make"
}

lowest() {
  uv venv --quiet --python 3.11 "$folder/lowest"
  # The plugin for SLURM needs a newer NumPy than all else, which would then not be the lowest.
  echo 'snakemake-executor-plugin-slurm; sys_platform == "none"' > "$folder/without.txt"
  uv pip compile --quiet "$clone/pyproject.toml" --all-extras --group "$clone/pyproject.toml:dev" \
    --override "$folder/without.txt" --resolution lowest-direct --python-version 3.11 -o "$folder/lowest.txt"
  uv pip install --quiet --python "$folder/lowest" --requirement "$folder/lowest.txt"
  uv pip install --quiet --python "$folder/lowest" --no-deps --editable "$clone"
  cd "$clone" && "$folder/lowest/bin/python" "${fast[@]}"
  "$folder/lowest/bin/python" -m pytest -q -n 2 tests/workflow/test_{job,pipeline}.py # on the oldest Snakemake
}

arm64() {
  local root=$folder/root
  debootstrap --download-only --arch=arm64 --variant=minbase --include=python3 trixie "$folder/arm64" "$mirror"
  mkdir -p "$root"
  for package in "$folder"/arm64/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
  uv pip install --quiet --target "$folder/packages" --python-platform aarch64-manylinux_2_31 \
    --python-version 3.13 --only-binary :all: --constraint "$clone/requirements.lock" \
    numpy scipy scikit-learn numba lazy-loader h5py dp-accounting mpmath opendp \
    pandas hypothesis pytest pytest-timeout
  # Called by name: no kernel need know of emulation. Not with all that QEMU can emulate, as it does
  # by default: OpenBLAS's products, of integers too, were wrong with ARM's matrix unit of QEMU 7.2.
  emulated() {
    qemu-aarch64-static -cpu cortex-a72 -L "$root" -E PYTHONPATH="$folder/packages:$clone/src" \
      -E NUMBA_CACHE_DIR="$folder/cache" -E HOME="$folder" -E PYTHONDONTWRITEBYTECODE=1 \
      "$root/usr/bin/python3.13" "$@"
  }
  emulated "$clone/tests/install/digests.py" > "$folder/arm64.txt"
  "$clone/.venv/bin/python" "$clone/tests/install/digests.py" > "$folder/this.txt"
  paste "$folder/this.txt" "$folder/arm64.txt"
  cd "$clone" # emulated tests take minutes of real time, which the suite's limit is not made for
  emulated -m pytest -q -p no:cacheprovider -o timeout=0 -m "not slow and not system" \
    tests/library/core tests/library/sketches
}

( # without these parentheses, Bash runs no trap here
  case $what in
    forky) debian forky sid ;;
    trixie) debian trixie trixie ;;
    lowest | arm64) "$what" ;;
    *) echo "no such system: $what" && exit 2 ;;
  esac
) 2>&1 | clean
