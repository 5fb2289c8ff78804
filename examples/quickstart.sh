#!/usr/bin/env bash
# examples/quickstart.sh [--fresh] - from a fresh Debian 12 or 13 to a trained and sampled text-to-image model.
#
# Installs what is missing (root or sudo), builds, makes a data set of the pictures of a Debian package, trains on 2
# ranks, and leaves checkpoints, samples and a report in quickstart/. Run it again and it resumes; --fresh starts over.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
for argument in "$@"; do
    [ "$argument" = --fresh ] || { echo "usage: examples/quickstart.sh [--fresh]" >&2; exit 2; }
done
out=quickstart

cmake/install-debian-packages.sh compile build quickstart

build=build/quickstart
echo "== configure: preset quickstart"
mkdir -p "$build"
cmake --preset quickstart >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; exit 1; }

echo "== build: $build"
cmake --build --preset quickstart --parallel "$(nproc)"

echo "== data: $out/stamps"
# As many as two cores learn within minutes; without --only it is all 649.
examples/datasets/stamps.sh "$out/stamps" --config "$out/multidatabackend.json" \
    --only food,plants,clothes/hats,animals/amphibians,animals/fish,animals/insects,animals/shellfish,town/flags,town/roadsigns

echo "== train: 2 ranks, results in $out/run (Ctrl-C saves; run again to resume)"
"$build/tools/strata" train examples/quickstart.json -n 2 --output "$out/run" "$@"

echo "== look at $out/run/report.html, or at the newest picture in $out/run/samples/"
