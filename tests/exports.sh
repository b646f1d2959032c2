#!/bin/sh
# Compares the symbols that the shared library exports with the list, and checks that each
# one is declared with WEIR_API in a public header.
#
#   exports.sh LIBRARY LIST SOURCE_ROOT            the test
#   exports.sh --update LIBRARY LIST SOURCE_ROOT   writes the list anew
set -eu
export LC_ALL=C

update=
if [ "$1" = --update ]; then
    update=yes
    shift
fi
library=$1 list=$2 root=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$folder/exported"
if [ "$update" ]; then
    cp "$folder/exported" "$list"
    exit 0
fi

# A declaration may run over several lines: one statement a line, then the name is the
# first word that a parenthesis or the end follows.
cat "$root"/lib/weir.h "$root"/lib/limiter.h "$root"/lib/test.h "$root"/lib/store/store.h \
    "$root"/filters/*.h 2>/dev/null |
    tr '\n' ' ' | tr ';' '\n' | grep -w WEIR_API | sed 's/.*WEIR_API//' |
    sed -n 's/^[^(]*\<\(weir_[a-z0-9_]*\) *\((.*\)\{0,1\}$/\1/p' | sort >"$folder/declared"

sort "$list" >"$folder/listed"
failed=0
if ! diff -u "$folder/listed" "$folder/exported"; then
    echo "exports differ from the list: run tests/exports.sh --update if they should"
    failed=1
fi
comm -23 "$folder/exported" "$folder/declared" >"$folder/strangers"
if [ -s "$folder/strangers" ]; then
    echo "exported without a WEIR_API declaration in a public header:"
    cat "$folder/strangers"
    failed=1
fi
exit $failed
