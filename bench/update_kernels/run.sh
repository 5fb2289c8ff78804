#!/bin/bash
# bench/update_kernels/run.sh [--threads N] [--rounds N] [--numel N] - called by bench/run.sh update_kernels.
#
# The peer is torch.optim of Debian's python3-torch; without that package its fields are left out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3-torch is not installed: no peer" >&2
fi
# Ours and the peer take turns: threads of the one that waits must not spin on the other's cores.
export OMP_WAIT_POLICY=passive
exec "$BENCH_BINARIES/strata_bench_update_kernels" "$@"
