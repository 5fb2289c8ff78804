#!/bin/bash
# cmake/update-snippets.sh - copies code into the pages that show it: every fence under `<!-- snippet: FILE NAME -->` in README.md and docs/
# becomes the lines between the marks `//! [NAME]` of FILE. A region that is not there leaves the fence as it is; the docs test says so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
grep -rl --include='*.md' '^<!-- snippet: ' README.md docs | while read -r page; do
    awk '
        function region(file, name,    line, text, mark, inside) {
            text = ""; inside = 0; mark = "//! [" name "]"
            while ((getline line < file) > 0) {
                bare = line; sub(/^ */, "", bare)
                if (bare == mark) { if (inside) break; inside = 1 } else if (inside) text = text line "\n"
            }
            close(file)
            return text
        }
        /^<!-- snippet: / { print; code = region($3, $4); if (code == "" || (getline) <= 0) next; print; printf "%s", code; skip = 1; next }
        skip && $0 != "```" { next }
        { skip = 0; print }
    ' "$page" >"$page.new"
    if cmp -s "$page" "$page.new"; then rm "$page.new"; else cat "$page.new" >"$page"; rm "$page.new"; echo "$page"; fi
done
