#!/bin/sh
# Compares the symbols that the shared library exports with the lists, and both with what
# the public headers declare as WEIR_API. Those of weir/fcgx.h have a list of their own,
# since a library that is built without libfcgi has none of them.
#
#   exports.sh LIBRARY LIST... HEADER...              the test; lists end in .txt
#   exports.sh --update LIBRARY LIST LIST_OF_FCGX     writes the lists anew
set -eu
export LC_ALL=C

update=
if [ "$1" = --update ]; then
    update=yes
    shift
fi
library=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$folder/exported"
if [ "$update" ]; then
    grep -v '^weir_fcgx_' "$folder/exported" >"$1"
    grep '^weir_fcgx_' "$folder/exported" >"$2"
    exit 0
fi
touch "$folder/lists"
while [ "${1%.txt}" != "$1" ]; do
    cat "$1" >>"$folder/lists"
    shift
done

# A declaration may run over several lines: one statement a line, then the name is the
# first word that a parenthesis or the end follows.
cat "$@" |
    tr '\n' ' ' | tr ';' '\n' | grep -w WEIR_API | sed 's/.*WEIR_API//' |
    sed -n 's/^[^(]*\<\(weir_[a-z0-9_]*\) *\((.*\)\{0,1\}$/\1/p' | sort >"$folder/declared"

sort "$folder/lists" >"$folder/listed"
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
