# The environment of requirements.lock, as `make setup` installs it, for Docker, Podman and Buildah:
#   docker build --tag privclust .
# docs/cluster.md says how to run it; privclust.def is the same for Apptainer.
ARG BASE=debian:trixie-slim
FROM ${BASE}

# Debian keeps no older version of a package: one that is pinned would soon not be there.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/privclust
COPY LICENSE Makefile README.md hatch_build.py pyproject.toml requirements.lock ./
COPY src src
RUN make setup PYTHON=python3 && rm -rf /root/.cache

# In a clone its own code goes before that of the image. A user without an entry in /etc/passwd has
# neither a home, where programs keep what they need again, nor a name, for which Snakemake asks.
ENV PATH=/opt/privclust/.venv/bin:$PATH \
    PYTHONPATH=src \
    HOME=/tmp \
    USER=privclust
WORKDIR /work
CMD ["privclust", "--help"]
