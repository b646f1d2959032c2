#!/bin/bash
# The demo behind lighttpd and Apache, with the configurations that are shipped: callers,
# the limit, the refusal's fields and body, and a log-in come through as behind nginx.

# Some functions are called by name:
# shellcheck disable=SC2317
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"
room_open

# config FILE USER-LINES: fills in a configuration of the demo's.
config() {
    sed -e "s|@PORT@|$port|" -e "s|@ROOM@|$room|" -e "s|@SOCKET@|$room/demo.sock|" \
        -e "s|@USER@|$2|" "$repo/demo_app/$1"
}

# Each server meets a demo on a fresh table.
start_demo() {
    local group=()
    [[ $(id -u) != 0 ]] || group=(--socket-group www-data)
    start demo "$build/demo_app/weir-demo" --listen "unix:$room/demo.sock" "${group[@]}"
    demo_pid=$pid
    started_or_die demo unix_listens "$room/demo.sock"
}

start_lighttpd() {
    local user=''
    [[ $(id -u) != 0 ]] || user='server.username = "www-data"'
    config lighttpd.conf.in "$user" >"$room/lighttpd.conf"
    start lighttpd lighttpd -D -f "$room/lighttpd.conf"
}

start_apache() {
    local user=''
    [[ $(id -u) != 0 ]] || user='User www-data\nGroup www-data'
    config apache.conf.in "$user" >"$room/apache.conf"
    start apache apache2 -D FOREGROUND -f "$room/apache.conf"
}

check_server() { # NAME
    local url=http://127.0.0.1:$port seen='' i

    request "$url/whoami"
    check "$1: the caller" '200 {"type":"ip","id":"127.0.0.1"}' "$status $body"
    request "$url/nowhere"
    check "$1: an unknown path" "404 NotFound" "$status $(jq -r .code <<<"$body")"

    for ((i = 0; i < 100; i++)); do
        request "$url//api/weather/%70aris?n=$i"
        seen+=$status$'\n'
    done
    check "$1: within the limit" "100 200" \
        "$(printf %s "$seen" | uniq -c | awk '{ print $1, $2 }' | paste -sd ' ')"
    check "$1: nothing is left" "r=0" "$(header RateLimit | grep -o 'r=[0-9]*')"
    request "$url/api/weather/paris"
    check "$1: over it" "429 application/problem+json TooManyRequests" \
        "$status $(header Content-Type) $(jq -r .code <<<"$body")"
    check_between "$1: Retry-After" 1 60 "$(header Retry-After)"
    request -I "$url/api/weather/paris"
    check "$1: HEAD counts as GET" 429 "$status"

    request -c "$room/cookies" -H 'Content-Type: application/json' \
        -d '{"user":"alice","password":"weir"}' "$url/api/login"
    request -b "$room/cookies" "$url/whoami"
    check "$1: after a log-in" '{"type":"user","id":"alice"}' "$body"
    request -b "$room/cookies" "$url/api/weather/paris"
    check "$1: a budget of its own" "200 r=99" \
        "$status $(header RateLimit | grep -o 'r=[0-9]*')"
}

for server in lighttpd apache; do
    port=$(free_port)
    start_demo
    "start_$server"
    server_pid=$pid
    started_or_die "$server" tcp_listens "$port"
    check_server "$server"
    stop "$server_pid" || true
    stop "$demo_pid" || true
done
finish
