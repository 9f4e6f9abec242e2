# The environment of requirements.lock, as `make setup` installs it, for Docker, Podman and Buildah:
#   docker build --tag privclust .
# docs/cluster.md says how to run it; privclust.def is the same for Apptainer.
ARG BASE=debian:bookworm-slim
FROM ${BASE}

RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/privclust
COPY LICENSE Makefile README.md pyproject.toml requirements.lock ./
COPY src src
RUN make setup PYTHON=python3 && rm -rf /root/.cache

# In a clone its own code goes before that of the image. What programs keep for later goes to /tmp:
# a user without an entry in /etc/passwd has no home.
ENV PATH=/opt/privclust/.venv/bin:$PATH \
    PYTHONPATH=src \
    XDG_CACHE_HOME=/tmp/cache \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /work
CMD ["privclust", "--help"]
