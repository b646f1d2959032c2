#!/bin/sh
# Builds the fuzz targets with clang, AddressSanitizer and UndefinedBehaviorSanitizer into
# build-fuzz and runs each for that many seconds (default 60). Exit status 1 if any finds
# something; the input is then in build-fuzz/found/: keep it in seeds/ with the repair.
#
#   tests/fuzz/run.sh [SECONDS] [TARGET...]
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -eq 0 ] || shift

if [ ! -f build-fuzz/build.ninja ]; then
    CC=clang CXX=clang++ meson setup build-fuzz -Dfuzz=true -Dtests=false -Ddemo=false \
        -Db_sanitize=address,undefined -Db_lundef=false
fi
ninja -C build-fuzz fuzzers

if [ $# -eq 0 ]; then
    for folder in tests/fuzz/seeds/*; do
        set -- "$@" "${folder##*/}"
    done
fi
failed=
for target in "$@"; do
    mkdir -p "build-fuzz/corpus/$target" build-fuzz/found
    log=build-fuzz/found/$target.log
    if "build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=4096 \
        -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="build-fuzz/found/$target-" \
        "build-fuzz/corpus/$target" "tests/fuzz/seeds/$target" >"$log" 2>&1; then
        echo "fuzz_$target: $(awk '/executed_units/ { print $2 }' "$log") inputs, nothing"
    else
        failed="$failed $target"
        tail -n 40 "$log"
    fi
done
[ -z "$failed" ] || {
    echo "found something:$failed"
    exit 1
}
