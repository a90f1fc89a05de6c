#!/usr/bin/env bash
# Writes the hashed locks anew: one per set of extras, plus uv itself and the build back ends.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() { # output, argument…
  local output=$1
  shift
  .tools/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
    --output-file "requirements/$output" "$@"
}
compile core.txt pyproject.toml
compile codecs.txt --extra codecs pyproject.toml
compile gateway.txt --extra gateway pyproject.toml
compile fleet.txt --extra fleet pyproject.toml
compile web.txt --extra web pyproject.toml
compile sandbox.txt --extra sandbox pyproject.toml
compile dev.txt --all-extras --group dev pyproject.toml
compile uv.txt requirements/uv.in
compile build.txt requirements/build.in
