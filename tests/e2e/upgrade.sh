#!/bin/bash
# A new generation takes over from the running one, and nobody notices: the sockets and
# the counters are handed on, no request is lost, one that doesn't start changes nothing.
#
# WEIR_STOPS: how many graceful stops and how many upgrades the steady load of 1,000
# requests a second over kept connections sees (default 10 of each).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/lib.sh"
room_open

stops=${WEIR_STOPS:-10}
socket=$room/app.sock
app=$room/app
cp "$build/tests/process_app" "$app"
export LD_LIBRARY_PATH=$build/lib

start_app() {
    local group=()
    [[ $(id -u) != 0 ]] || group=(--socket-group www-data)
    rm -f "$room/app.log"
    start app "$app" --listen "unix:$socket" --threads 4 "${group[@]}"
    app_pid=$pid
    started_or_die app grep -q 'ready: ' "$room/app.log"
}

taken_over() { # how many generations have
    grep -c 'has taken over' "$room/app.log" || true
}
took_over() { # COUNT
    [[ $(taken_over) -ge $1 ]]
}
# Upgrades and waits for the end of the old generation; app_pid is then the new one.
upgrade() {
    local old=$app_pid count
    count=$(taken_over)
    kill -USR2 "$old"
    wait_for 20 took_over $((count + 1)) || die "nobody has taken over: $(tail -n 5 "$room/app.log")"
    app_pid=$(sed -n 's/.*upgrade: process \([0-9]*\) has taken over.*/\1/p' "$room/app.log" | tail -n 1)
    started+=("$app_pid")
    wait_for 20 ended "$old"
    wait "$old" 2>/dev/null || true
    forget "$old"
}
ended() {
    ! is_running "$1"
}
workers() {
    cat "/proc/$app_pid/task/$app_pid/children"
}

nginx_http="upstream app { server unix:$socket; keepalive 16; }"
nginx_start 0 <<END
location / {
    include /etc/nginx/fastcgi_params;
    fastcgi_keep_conn on;
    fastcgi_pass app;
}
location /limited { include /etc/nginx/fastcgi_params; fastcgi_pass unix:$socket; }
location = /store {
    fastcgi_param REQUEST_METHOD GET;
    fastcgi_param REQUEST_URI /limited;
    fastcgi_param REMOTE_ADDR \$remote_addr;
    fastcgi_pass unix:$room/limited.sock;
}
END
url=http://127.0.0.1:$nginx_port

check_counters() {
    local i inode first
    start_app
    inode=$(stat -c %i "$socket")
    first=$app_pid
    for ((i = 0; i < 4; i++)); do
        request "$url/limited"
    done
    check "4 of 5" 200 "$status"
    upgrade
    upgrade
    check "two upgrades: another process serves" yes \
        "$([[ $app_pid != "$first" ]] && echo yes)"
    check "the socket's file is the same" "$inode" "$(stat -c %i "$socket")"
    request "$url/limited"
    check "the fifth still passes" 200 "$status"
    request "$url/limited"
    check "the sixth doesn't" 429 "$status"
}

# What stands in the program's place is no program that serves.
check_failing_generation() {
    local old=$app_pid
    mv "$app" "$room/good"
    cp /bin/false "$app"
    kill -USR2 "$old"
    wait_for 10 grep -q 'has not started: this generation goes on' "$room/app.log"
    request "$url/limited"
    check "one that doesn't start: the old one goes on, its counters too" 429 "$status"
    rm "$app"
    kill -USR2 "$old"
    wait_for 10 failed_twice
    request "$url/fast"
    check "no program there: the old one goes on" 200 "$status"
    cp "$room/good" "$app"
    upgrade
    request "$url/limited"
    check "a good one again takes over" "429 yes" \
        "$status $([[ $app_pid != "$old" ]] && echo yes)"
}
failed_twice() {
    [[ $(grep -c 'has not started' "$room/app.log") == 2 ]]
}

check_stop() {
    local family
    family="$app_pid $(workers)"
    kill -TERM "$app_pid"
    # shellcheck disable=SC2086
    wait_for 10 all_gone $family || true
    # shellcheck disable=SC2086
    check "SIGTERM to the last generation: no process is left" yes "$(all_gone $family && echo yes)"
    check "and no socket" no "$([[ -e $socket ]] || echo no)"
    forget "$app_pid"
}
all_gone() { # PID...
    local one
    for one in "$@"; do
        ! is_running "$one" || return 1
    done
}

# The load over nginx's own pool of kept connections.
check_nginx() {
    local i load
    start_app
    statuses -Z --parallel-max 8 "$url/slow?ms=5&n=[1-2000]" >"$room/load" 2>"$room/curl.log" &
    load=$!
    for ((i = 0; i < 5; i++)); do
        sleep 0.1
        upgrade
    done
    wait "$load" || true
    check "five upgrades behind nginx: every request is answered with 200" "2000 200" \
        "$(sort "$room/load" | uniq -c | sed 's/^ *//' | paste -sd ' ')"
    stop "$app_pid" || true
    forget "$app_pid"
}

# Prints what was lost and sent of the load in that file.
of_load() { # FIELD FILE
    sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$2"
}

check_steady_upgrades() {
    local i load
    start_app
    "$build/tests/steady" "$socket" 1000 16 600 >"$room/steady" 2>&1 &
    load=$!
    started+=("$load")
    for ((i = 0; i < stops; i++)); do
        sleep 0.1
        upgrade
    done
    kill -TERM "$load"
    wait "$load" || true
    forget "$load"
    check "$stops upgrades at 1,000 requests/s: lost" 0 "$(of_load lost "$room/steady")"
    check_between "of so many" $((stops * 100)) 1000000 "$(of_load sent "$room/steady")"
    [[ -z ${show_all:-} ]] || tail -n 1 "$room/steady"
    stop "$app_pid" || true
    forget "$app_pid"
}

# The socket outlives its instances, as under systemd; process_rolling.py stops them.
check_steady_stops() {
    local load rolling instances=0 good
    start rolling python3 "$here/process_rolling.py" "$room/rolling.sock" "$app" --threads 4
    rolling=$pid
    started_or_die rolling grep -q started "$room/rolling.log"
    "$build/tests/steady" "$room/rolling.sock" 1000 16 $((stops * 2 + 2)) >"$room/steady" 2>&1 &
    load=$!
    started+=("$load")
    sleep $((stops / 2 + 1))
    kill -TERM "$load"
    wait "$load" || true
    forget "$load"
    stop "$rolling" 20 || true
    read -r instances good < <(tail -n 1 "$room/rolling.log")
    check "$instances graceful stops at 1,000 requests/s: lost" 0 "$(of_load lost "$room/steady")"
    check "each of them ended with 0" "$instances" "$good"
    check_between "graceful stops" $((stops / 2)) 100000 "$instances"
    [[ -z ${show_all:-} ]] || tail -n 1 "$room/steady"
}

# systemd keeps the counters' memory in its descriptor store.
check_store() {
    local i keeper
    start keeper python3 "$here/upgrade_store.py" "$room/limited.sock" "$app" --workers 1 --shm-entries 1000
    keeper=$pid
    started_or_die keeper grep -q started "$room/keeper.log"
    for ((i = 0; i < 4; i++)); do
        request "$url/store"
    done
    check "kept by systemd: 4 of 5" 200 "$status"
    kill -HUP "$keeper"
    wait_for 10 started_twice
    request "$url/store"
    check "after a restart the fifth passes" 200 "$status"
    request "$url/store"
    check "and the sixth doesn't" 429 "$status"
    stop "$keeper" || true
    check "what systemd was told" "FDSTOREREMOVE=1 FDSTORE=1 READY=1 STOPPING=1 READY=1 STOPPING=1" \
        "$(tail -n 1 "$room/keeper.log")"
}
started_twice() {
    [[ $(grep -c '^started' "$room/keeper.log") == 2 ]]
}

check_counters
check_failing_generation
check_stop
check_nginx
check_steady_upgrades
check_steady_stops
check_store
finish
