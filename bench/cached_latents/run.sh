#!/bin/bash
# bench/cached_latents/run.sh [--latents N] [--rounds N] [--batch N] [--threads N] - called by bench/run.sh cached_latents.
#
# Needs 0.7 MB a latent below $TMPDIR (/tmp), and as much free memory, so that the page cache holds all files. The peer
# is a DataLoader of Debian's python3-torch; without that package its fields are left out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if /usr/bin/python3 -c 'import torch, numpy' 2>/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3-torch is not installed: no peer (apt-get install python3-torch)" >&2
fi
# Ours and the peer take turns: threads of the one that waits must not spin on the other's cores.
export OMP_WAIT_POLICY=passive
exec "$BENCH_BINARIES/strata_bench_cached_latents" "$@"
