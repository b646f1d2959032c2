#!/bin/sh
# Compares the symbols that the shared library exports with the list, and both with what
# the public headers declare as WEIR_API.
#
#   exports.sh LIBRARY LIST HEADER...         the test
#   exports.sh --update LIBRARY LIST          writes the list anew
set -eu
export LC_ALL=C

update=
if [ "$1" = --update ]; then
    update=yes
    shift
fi
library=$1 list=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$folder/exported"
if [ "$update" ]; then
    cp "$folder/exported" "$list"
    exit 0
fi

# A declaration may run over several lines: one statement a line, then the name is the
# first word that a parenthesis or the end follows.
cat "$@" |
    tr '\n' ' ' | tr ';' '\n' | grep -w WEIR_API | sed 's/.*WEIR_API//' |
    sed -n 's/^[^(]*\<\(weir_[a-z0-9_]*\) *\((.*\)\{0,1\}$/\1/p' | sort >"$folder/declared"

sort "$list" >"$folder/listed"
failed=0
if ! diff -u "$folder/listed" "$folder/exported"; then
    echo "exports differ from the list: run tests/exports.sh --update if they should"
    failed=1
fi
if ! diff -u "$folder/declared" "$folder/exported"; then
    echo "exports differ from the WEIR_API declarations of the public headers"
    failed=1
fi
exit $failed
