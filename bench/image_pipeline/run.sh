#!/bin/bash
# bench/image_pipeline/run.sh [--rounds N] [--pictures N] [--threads N] - called by bench/run.sh image_pipeline.
#
# Photos are taken from $PHOTOS (../shared/data/images/photos beside the repository); without them the bench draws some.
# The peer is a DataLoader of Debian's python3-torch with python3-pil; without these packages its fields are left out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
photos="${PHOTOS:-$here/../../../shared/data/images/photos}"
if [[ -d "$photos" ]]; then export BENCH_PHOTOS="$photos"; fi
if /usr/bin/python3 -c 'import torch, PIL, numpy' 2>/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3-torch, python3-pil or python3-numpy is not installed: no peer" >&2
fi
# Ours and the peer take turns: threads of the one that waits must not spin on the other's cores.
export OMP_WAIT_POLICY=passive
exec "$BENCH_BINARIES/strata_bench_image_pipeline" "$@"
