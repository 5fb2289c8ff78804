#!/bin/bash
# bench/sample_index/run.sh [--pictures N] [--rounds N] [--batch N] - called by bench/run.sh sample_index.
#
# Needs 0.6 GB below $TMPDIR (/tmp) and 3 GB of memory for a million pictures. The peer is python3 alone.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if command -v /usr/bin/python3 >/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3 is not installed: no peer" >&2
fi
exec "$BENCH_BINARIES/strata_bench_sample_index" "$@"
