#!/bin/bash
# The program of README.md, word for word: built as a stranger would, against an installed
# library, and asked through nginx as README.md configures it.
set -euo pipefail
. "$(dirname "$0")/support/lib.sh"
room_open

# block KIND: the first block of that kind in README.md.
block() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$repo/README.md" | sed '1d; /^```$/q' | sed '$d'
}

block c >"$room/forecast.c"
lines=$(sed -n '/^static int forecast/,$p' "$room/forecast.c" | wc -l)
check_between "lines of the program, its includes apart" 15 25 "$lines"

DESTDIR=$room/installed meson install -C "$build" --no-rebuild >"$room/install.log" 2>&1 ||
    { tail -n 20 "$room/install.log"; die "meson install failed"; }
description=$(find "$room/installed" -name weir.pc)
export PKG_CONFIG_SYSROOT_DIR=$room/installed PKG_CONFIG_PATH=${description%/*}
read -r -a flags < <(pkg-config --cflags --libs weir)
status=0
cc -std=c11 -Wall -Wextra -Werror -Wno-missing-field-initializers -o "$room/forecast" \
    "$room/forecast.c" "${flags[@]}" >"$room/cc.log" 2>&1 || status=$?
cat "$room/cc.log"
check "it compiles without a warning" 0 "$status"
((status == 0)) || finish

socket=$room/forecast.sock
group=()
[[ $(id -u) != 0 ]] || group=(--socket-group www-data)
export LD_LIBRARY_PATH=${description%/pkgconfig/*}
start forecast "$room/forecast" --listen "unix:$socket" "${group[@]}"
unset LD_LIBRARY_PATH
started_or_die forecast unix_listens "$socket"
nginx_start 0 < <(block nginx | sed "s|/run/forecast.sock|$socket|")
url=http://127.0.0.1:$nginx_port/api/weather/paris

request "$url"
check "an address" '200 {"city":"paris","sky":"clear"}' "$status $body"
check "the first of its 100" '"minute";r=99' "$(header RateLimit | grep -o '"minute";r=[0-9]*')"
check "the last one and the first over it" $'200\n429' \
    "$(statuses "$url?[2-101]" | tail -n 2)"
request -b sid=4f6a "$url"
check "a user has a budget of its own" '200 "minute";r=99' \
    "$status $(header RateLimit | grep -o '"minute";r=[0-9]*')"
request "${url%/*}"
check "another path" 404 "$status"
finish
