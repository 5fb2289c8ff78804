#!/bin/sh
# tests/consume/pkg_config.sh PKG_CONFIG PREFIX COMPILER SOURCE FOLDER - builds and runs SOURCE with the flags of PREFIX's strata.pc.
set -eu
mkdir -p "$5"
cd "$5"
pc=$(dirname "$(find "$2" -name strata.pc)")
export PKG_CONFIG_PATH="$pc"
[ "$("$1" --variable=prefix strata | xargs realpath)" = "$(realpath "$2")" ] || { echo "strata.pc names another prefix"; exit 1; }
# shellcheck disable=SC2046  # flags are words
"$3" -DCONSUMER_WANTS_COMPILED -o consumer "$4" $("$1" --cflags --libs strata)
./consumer
