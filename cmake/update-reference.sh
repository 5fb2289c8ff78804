#!/bin/bash
# cmake/update-reference.sh [STRATA] - writes the tables of docs/config/ anew, below the line of each page that says that they are printed.
#
#   STRATA  the command; without it build/dev/tools/strata
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
strata=${1:-build/dev/tools/strata}
[ -x "$strata" ] || { echo "update-reference: no program '$strata'. Fix: cmake --build --preset dev --target strata_tool" >&2; exit 1; }
for format in deepspeed accelerate simpletuner; do
    page=docs/config/$format.md
    { sed '/^<!-- What follows is printed/q' "$page"; echo; "$strata" config reference "$format"; } >"$page.new"
    if cmp -s "$page" "$page.new"; then rm "$page.new"; else mv "$page.new" "$page"; echo "$page"; fi
done
