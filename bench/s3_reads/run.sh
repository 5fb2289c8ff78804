#!/bin/bash
# bench/s3_reads/run.sh [OBJECTS [ROUNDS]] - called by bench/run.sh s3_reads; starts the S3 server of the tests for it.
#
# Needs radosgw, ceph-mon and ceph-osd. The second peer is Debian's python3-boto3; without it, its fields are left out.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if /usr/bin/python3 -c 'import boto3' 2>/dev/null; then
    export BENCH_PEER_PYTHON=/usr/bin/python3 BENCH_PEER_SCRIPT="$here/peer.py"
else
    echo "python3-boto3 is not installed: without it as a peer" >&2
fi
folder=$(mktemp -d)
coproc server { exec "$here/../../tests/storage/s3_server.sh" "$folder/server" "${BENCH_S3_PORT:-17480}" BENCHKEY bench-secret; }
trap 'exec {server[1]}>&-; wait "$server_PID" 2>/dev/null || true; rm -rf "$folder"' EXIT
read -r answer url <&"${server[0]}"
[ "$answer" = ready ] || { echo "no S3 server: $answer $url" >&2; exit 1; }
"$BENCH_BINARIES/strata_bench_s3_reads" "$url" BENCHKEY bench-secret "$@"
