#!/bin/bash
# A log that can't be written holds up nobody: its reader stands still, its disk is full;
# and a flood of refusals is no flood of lines. The load is 1,000 requests a second over
# kept connections.
# What sh -c gets is expanded there.
# shellcheck disable=SC2016
set -euo pipefail
. "$(dirname "$0")/../support/lib.sh"
room_open

seconds=${WEIR_SECONDS:-2}
socket=$room/app.sock
export PROCESS_APP_LOG=yes

load() { # WHAT URI
    "$build/tests/steady" "$socket" 1000 8 "$seconds" "$2" >"$room/steady" 2>"$room/steady.lost" || true
    check "$1: requests without an answer" 0 "$(grep -vc 'status 429' "$room/steady.lost" || true)"
    check "$1: all were sent" $((seconds * 1000)) "$(field sent)"
    check_between "$1: the slowest, in us" 0 "${WEIR_SLOWEST_US:-400000}" "$(field slowest)"
    [[ -z ${show_all:-} ]] || cat "$room/steady"
}
field() {
    sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$room/steady"
}

# serve WHAT FILE [URI]: the load with standard error in that file.
serve() {
    start app sh -c 'file=$1; shift; exec "$@" 2>"$file"' sh "$2" \
        "$build/tests/process_app" --listen "unix:$socket" --threads 4
    started_or_die app unix_listens "$socket"
    load "$1" "${3:-/fast}"
    stop "$pid" || true
}

check_stopped_reader() {
    mkfifo "$room/pipe"
    start reader sh -c 'exec sleep 1000 <"$1"' sh "$room/pipe"
    local reader=$pid
    serve "a reader that stands still" "$room/pipe"
    stop "$reader" || true
}

check_full_disk() {
    serve "a device that is always full" /dev/full
    mkdir "$room/disk"
    # A disk of 16 KiB, in a namespace of its own.
    start disk unshare --map-root-user --mount sh -c '
        mount -t tmpfs -o size=16k tmpfs "$1/disk" && shift && exec "$@" 2>"$0"' \
        "$room/disk/log" "$room" \
        "$build/tests/process_app" --listen "unix:$socket" --threads 4
    started_or_die disk unix_listens "$socket"
    load "a full disk" /fast
    check "the disk is full" 16384 "$(stat -c %s "/proc/$pid/root$room/disk/log")"
    stop "$pid" || true
}

check_flood() {
    local lines left_out refused
    serve "a flood of refusals" "$room/flood" /limited
    lines=$(grep -c 'status=429' "$room/flood")
    refused=$(grep -c 'status 429' "$room/steady.lost")
    left_out=$(sed -n 's/.*dropped=\([0-9]*\) status=429.*/\1/p' "$room/flood" | paste -sd+ | { read -r sum && echo $((sum)); })
    # One a second for each worker.
    check_between "lines for them" 1 $((2 * (seconds + 2))) "$lines"
    check_between "of so many refusals" $((seconds * 900)) $((seconds * 1000)) "$refused"
    check_between "lines and what they left out" 2 "$refused" $((lines + left_out))
    check "one event a line" 0 \
        "$(grep -vcE '^[0-9T:.-]+Z weir\[[0-9]+\] (info|debug|warning|error): [ -~]+$' "$room/flood" || true)"
}

check_stopped_reader
check_full_disk
check_flood
finish
