#!/usr/bin/env bash
# Everything that `make demo` and `make test` need, on a machine with only Python 3.11+, git and make; with --bench, what
# `make bench` needs besides.
# Re-run freely: each step looks first, and with warm caches nothing touches the network.
set -euo pipefail
cd "$(dirname "$0")/.."

for_bench=false
if [ "${1:-}" = --bench ]; then for_bench=true; shift; fi

say() { printf '%s\n' "$*" >&2; }
die() { say "brimline set-up: $*"; exit 1; }

as_root_install() { # package…: by the system's package manager, when that is possible
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  say "Installing $* with apt-get…"
  apt-get update -qq >/dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

find_python() {
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer is needed and was not found on the PATH."
}

# 1. What cannot be had from a package registry comes first: better to fail before the downloads than after.
java_version() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  "$java" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p'
}
java_is_enough() { local version; version=$(java_version) && [ "${version:-0}" -ge 17 ]; }
if ! java_is_enough; then
  [ -z "${JAVA_HOME:-}" ] || die "JAVA_HOME=$JAVA_HOME holds no Java 17 or newer: point it at a JDK, or unset it."
  # Debian's default is 17 or newer since bookworm.
  as_root_install default-jdk-headless || as_root_install openjdk-17-jdk-headless || true
  java_is_enough || die "Kafka needs a Java 17+ JDK: install one (Debian: default-jdk-headless) or set JAVA_HOME, then run this again."
fi
# Namespaces for the sandbox's volumes.
command -v unshare >/dev/null || as_root_install util-linux || die "the sandbox needs 'unshare' (package util-linux)."

# Rules of the kernel for the interception. Its tests say so if they are absent.
if [ $# = 0 ]; then PATH=$PATH:/usr/sbin command -v nft >/dev/null || as_root_install nftables iproute2 || true; fi

# A browser for the tests of the pages. They say so if it is absent.
if [ $# = 0 ]; then command -v chromium >/dev/null || as_root_install chromium fonts-dejavu-core || true; fi

# The gateway is measured against HAProxy, by clients in C.
if $for_bench; then
  PATH=$PATH:/usr/sbin command -v haproxy >/dev/null || as_root_install haproxy || die "the benchmarks need 'haproxy'."
  command -v cc >/dev/null || as_root_install gcc libc6-dev || die "the benchmarks need a C compiler ('cc')."
fi

# 2. uv, in a venv of its own: a system Python may refuse global installs.
if ! .tools/bin/uv --version >/dev/null 2>&1; then
  python=$(find_python)
  rm -rf .tools
  if ! "$python" -m venv .tools >/dev/null 2>&1; then
    # Debian ships venv apart from Python.
    rm -rf .tools
    as_root_install python3-venv || die "'$python -m venv' does not work: install your system's python3-venv package, then run this again."
    "$python" -m venv .tools
  fi
  say "Installing uv…"
  .tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/uv.txt
fi

# 3. The locked environment. The stamp is the locks' own checksum, so an unchanged lock costs nothing.
stamp=$(cat pyproject.toml hatch_build.py requirements/dev.txt requirements/build.txt | sha256sum | cut -d' ' -f1)
if ! .venv/bin/python -c '' 2>/dev/null || [ "$(cat .venv/brimline-stamp 2>/dev/null || true)" != "$stamp" ]; then
  say "Installing the locked environment (the first time it downloads about 450 MB, most of it Spark)…"
  .venv/bin/python -c '' 2>/dev/null || .tools/bin/uv venv --quiet --clear --python "$(find_python)" .venv
  # Behind a company's proxy only the system knows its certificate authority
  export VIRTUAL_ENV=$PWD/.venv UV_HTTP_TIMEOUT=300 UV_SYSTEM_CERTS=true
  .tools/bin/uv pip sync --quiet --require-hashes --build-constraints requirements/build.txt requirements/dev.txt
  .tools/bin/uv pip install --quiet --no-deps --no-build-isolation --editable .
  printf '%s\n' "$stamp" > .venv/brimline-stamp
fi

# 4. Kafka's and Delta's jars, checked against their locks, into the per-user cache.
if [ $# = 0 ]; then quick=--quick; else quick=; fi # class archives pay where many brokers are started
.venv/bin/python -m brimline.sandbox.jars fetch $quick "$@"
.venv/bin/python -m brimline.fleet.session.delta_jars
if [ $# = 0 ]; then .venv/bin/python -m brimline.fleet.session.class_archive; fi # else the first run makes it

# 5. Prometheus and promtool, which test dashboard and alerts: unpacked from Debian's package, not installed. Their tests say so
# if they are absent.
if [ $# = 0 ] && ! command -v prometheus >/dev/null && [ ! -e .tools/prometheus/prometheus ] && command -v apt-get >/dev/null; then
  say "Fetching Prometheus…"
  download=$(mktemp -d)
  trap 'rm -rf "$download"' EXIT
  if [ "$(id -u)" = 0 ]; then apt-get update -qq >/dev/null 2>&1 || true; fi
  if (cd "$download" && apt-get download -qq prometheus >/dev/null 2>&1 && dpkg-deb -x prometheus_*.deb unpacked); then
    mkdir -p .tools/prometheus
    mv "$download"/unpacked/usr/bin/prom* .tools/prometheus/
  fi
fi
