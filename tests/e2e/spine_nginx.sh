#!/bin/bash
# The spine under many peers at once, through a real nginx: 64 clients send 50 requests
# each, and exactly 100 of the 3,200 pass; connections that only wait, ten for each thread
# of the demo and as many silent ones, hold nobody up.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"
room_open

clients=64
requests=50
workers=2
threads=8

group=()
[[ $(id -u) != 0 ]] || group=(--socket-group www-data)
nginx_http="upstream demo { server unix:$room/demo.sock; keepalive 32; }"
nginx_start 0 <<'END'
location / {
    include /etc/nginx/fastcgi_params;
    fastcgi_pass demo;
    fastcgi_keep_conn on;
}
END
url=http://127.0.0.1:$nginx_port

# start_demo: on a fresh table.
start_demo() {
    start demo "$build/demo_app/weir-demo" --listen "unix:$room/demo.sock" "${group[@]}" \
        --workers $workers --threads $threads
    started_or_die demo unix_listens "$room/demo.sock"
}

# all_clients: every status that was seen and how often, "100 x 200, 3100 x 429".
all_clients() {
    local i clients_pids=()
    for ((i = 0; i < clients; i++)); do
        statuses "$url/api/weather/paris?client=$i&n=[1-$requests]" >"$room/client.$i" &
        clients_pids+=($!)
    done
    wait "${clients_pids[@]}" || true
    cat "$room"/client.* | sort | uniq -c |
        awk '{ printf "%s%d x %s", (NR > 1 ? ", " : ""), $1, $2 }'
}

# The window is a minute from the first request: a machine so slow that it ends in between
# proves nothing, and is asked again.
for try in 1 2 3; do
    start_demo
    begin=$SECONDS
    seen=$(all_clients)
    ((SECONDS - begin > 55 && try < 3)) || break
    say "took $((SECONDS - begin)) s, longer than the window: again"
    stop "$pid" || true
done
check "$clients clients, $requests requests each" \
    "100 x 200, $((clients * requests - 100)) x 429" "$seen"

# On the machine of the tests the slowest answer may be unlucky once, not three times.
status=1
for try in 1 2 3; do
    python3 "$here/spine_idle.py" "$room/demo.sock" "$url" $((10 * workers * threads)) &&
        status=0 && break
done
check "100 requests beside idle and silent connections" 0 "$status"
finish
