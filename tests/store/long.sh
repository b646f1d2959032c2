#!/bin/sh
# The store's programs for as long as it takes to find what is rare: 500 runs of each mix
# of exact, 10,000 kills, 50 rounds of stops and locks. Some minutes; not part of the
# normal run.
#
#   long.sh [BUILD_FOLDER]
set -eu
cd "$(dirname "$0")/../.."
programs=${1:-build}/tests/store

"$programs/store_exact" 500
"$programs/store_kills" 10000
round=0
while [ $round -lt 50 ]; do
    "$programs/store_stops" >/dev/null
    "$programs/store_locks" >/dev/null
    round=$((round + 1))
done
echo "50 rounds of stops and locks"
