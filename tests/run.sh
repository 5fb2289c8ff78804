#!/bin/bash
# tests/run.sh [ctest arguments] - installs what is missing, builds, runs the tests; exit status is ctest's.
#
#   tests/run.sh                 everything
#   tests/run.sh -R partition    the tests whose name holds "partition"
#   PRESET=asan tests/run.sh     another preset of CMakePresets.json (default: dev)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${PRESET:-dev}
jobs=$(nproc)

cmake/install-debian-packages.sh compile build package tests

echo "== configure: preset $preset"
mkdir -p "build/$preset"
log="build/$preset/configure.log"
cmake --preset "$preset" >"$log" 2>&1 || { cat "$log"; exit 1; }

echo "== build: build/$preset, $jobs jobs"
cmake --build --preset "$preset" --parallel "$jobs"

echo "== test"
# Not exec: where this script is the first process (of a container, say), processes that lose their parent become its children,
# and the shell asks for their ends, as ctest does not.
ctest --preset "$preset" --parallel "$jobs" "$@"
