#!/bin/sh
# Installs the library into a folder of its own, builds examples/limit_job.c as a stranger
# would, with pkg-config and the installed headers alone, and compares what it prints.
#
#   example.sh BUILD_FOLDER SOURCE_ROOT
set -eu
build=$1 root=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

DESTDIR="$folder/installed" meson install -C "$build" --no-rebuild >"$folder/log" 2>&1 || {
    cat "$folder/log"
    exit 1
}
description=$(find "$folder/installed" -name weir.pc)
export PKG_CONFIG_SYSROOT_DIR="$folder/installed"
export PKG_CONFIG_PATH="${description%/*}"

cp "$root/examples/limit_job.c" "$folder/"
cd "$folder"
# Split on purpose: flags are words.
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror limit_job.c \
    $(pkg-config --cflags --libs weir) -o limit_job
LD_LIBRARY_PATH="${description%/pkgconfig/*}" ./limit_job >seen

cat >expected <<'EOF'
alice: sent
alice: sent
alice: sent
alice: sent
alice: sent
alice: not now, rule "customer", again in N ms
bob: sent
bob: sent
bob: sent
bob: not now, rule "all", again in N ms
EOF
sed 's/in [0-9]* ms/in N ms/' seen | diff -u expected -
