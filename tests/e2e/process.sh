#!/bin/bash
# Parent and workers behind nginx: a killed worker is replaced, a stop finishes what runs
# and leaves nothing, a killed parent leaves nobody, a second instance disturbs nobody.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/lib.sh"
room_open

socket=$room/app.sock
app=$build/tests/process_app

start_app() {
    local group=()
    [[ $(id -u) != 0 ]] || group=(--socket-group www-data)
    start app "$app" --listen "unix:$socket" --threads 4 "${group[@]}"
    app_pid=$pid
    started_or_die app grep -q 'ready: ' "$room/app.log"
}

workers() { # the process ids of the app's workers
    cat "/proc/$app_pid/task/$app_pid/children"
}
now_ms() {
    date +%s%3N
}
# Prints after how many milliseconds the command succeeds, "never" after 10 s.
ms_until() {
    local begin
    begin=$(now_ms)
    until "$@"; do
        (($(now_ms) - begin < 10000)) || { echo never && return; }
        sleep 0.01
    done
    echo $(($(now_ms) - begin))
}
has_two_without() { # PID
    local list
    list=" $(workers) "
    [[ $list != *" $1 "* && $(wc -w <<<"$list") == 2 ]]
}
all_gone() { # PID...
    local one
    for one in "$@"; do
        ! is_running "$one" || return 1
    done
}
parents_ticks() {
    cut -d ' ' -f 14,15 "/proc/$app_pid/stat" | tr ' ' '+' | { read -r sum && echo $((sum)); }
}

nginx_start 0 <<END
location / { include /etc/nginx/fastcgi_params; fastcgi_pass unix:$socket; }
location /rolling { include /etc/nginx/fastcgi_params; fastcgi_pass unix:$room/rolling.sock; }
END
url=http://127.0.0.1:$nginx_port

check_killed_worker() {
    local ticks victim replaced lost ticks_per_s load i
    start_app
    request "$url/fast"
    check "it serves" "200 fast" "$status $body"
    ticks=$(parents_ticks)
    statuses -Z --parallel-max 8 "$url/slow?ms=5&n=[1-3000]" >"$room/load" 2>"$room/curl.log" &
    load=$!
    for ((i = 0; i < 5; i++)); do
        sleep 0.1
        victim=$(workers)
        victim=${victim%% *}
        kill -KILL "$victim"
        replaced=$(ms_until has_two_without "$victim")
        check_between "kill -9 under load: replaced, in ms" 0 1000 "$replaced"
    done
    check "the load lasts longer than the kills" yes "$(is_running "$load" && echo yes)"
    wait "$load" || true
    check "every request of the load has an answer" 3000 "$(grep -c . "$room/load")"
    # At most what was in flight when a worker went: 8 requests, 5 times.
    lost=$(grep -vc '^200$' "$room/load" || true)
    check_between "requests lost to five kills" 0 40 "$lost"
    request "$url/fast"
    check "it still serves" 200 "$status"
    ticks_per_s=$(getconf CLK_TCK)
    check_between "the parent's processor time for all this, in ms" 0 250 \
        "$((($(parents_ticks) - ticks) * 1000 / ticks_per_s))"
}

check_idle_stop() {
    local begin family
    family="$app_pid $(workers)"
    begin=$(now_ms)
    kill -TERM "$app_pid"
    status=0
    wait "$app_pid" || status=$?
    check "SIGTERM while idle: the status" 0 "$status"
    check_between "SIGTERM while idle: gone, in ms" 0 1000 $(($(now_ms) - begin))
    # shellcheck disable=SC2086
    check "SIGTERM while idle: no process is left" yes "$(all_gone $family && echo yes)"
    check "SIGTERM while idle: no socket is left" no "$([[ -e $socket ]] || echo no)"
}

check_busy_stop() {
    local slow begin family
    rm -f "$room/app.log"
    start_app
    family="$app_pid $(workers)"
    statuses "$url/slow?ms=2000" >"$room/slow" &
    slow=$!
    sleep 0.5
    begin=$(now_ms)
    kill -TERM "$app_pid"
    status=0
    wait "$app_pid" || status=$?
    check "SIGTERM while a request runs: the status" 0 "$status"
    check_between "SIGTERM while a request runs: gone, in ms" 1000 4000 \
        $(($(now_ms) - begin))
    wait "$slow" || true
    check "the request was answered first" 200 "$(cat "$room/slow")"
    # shellcheck disable=SC2086
    check "no process is left after it" yes "$(all_gone $family && echo yes)"
}

check_killed_parent() {
    local family gone
    rm -f "$room/app.log"
    start_app
    family=$(workers)
    kill -KILL "$app_pid"
    # shellcheck disable=SC2086
    gone=$(ms_until all_gone $family)
    check_between "parent killed: the workers are gone, in ms" 0 1000 "$gone"
    wait "$app_pid" 2>/dev/null || true
    check "its socket is left behind" yes "$([[ -S $socket ]] && echo yes)"
    rm -f "$room/app.log"
    start_app
    request "$url/fast"
    check "the next one takes the dead socket over" 200 "$status"
}

# A check, a listing and another instance while the first has counted 4 of 5.
check_second_instance() {
    local i out
    for ((i = 0; i < 4; i++)); do
        request "$url/limited"
    done
    check "4 of 5" 200 "$status"
    "$app" --check --shm-entries 1000
    out=$("$app" --routes | grep -A1 '^GET /limited')
    check "--routes names the limit" "day: fixed window, 5 in 86400s, by caller" \
        "$(tail -n 1 <<<"$out" | sed 's/^ *//')"
    status=0
    out=$("$app" --listen "unix:$socket" 2>&1) || status=$?
    check "another one on the same socket is refused" \
        "73 unix:$socket: already in use" "$status ${out##*error: }"
    start other "$app" --listen "unix:$room/other.sock" --shm-entries 1000 --workers 1
    started_or_die other grep -q 'ready: ' "$room/other.log"
    stop "$pid"
    request "$url/limited"
    check "the fifth still passes" 200 "$status"
    request "$url/limited"
    check "the sixth doesn't" 429 "$status"
}

check_failing_start() {
    local out
    status=0
    out=$("$app" --listen "unix:$room/broken.sock" --broken yes 2>&1) || status=$?
    check "workers that can't start: the status" 71 "$status"
    check "no socket is left of it" no "$([[ -e $room/broken.sock ]] || echo no)"
    status=0
    out=$("$app" --listen "tcp:localhost:1" 2>&1) || status=$?
    check "a wrong address: one line" "64 1" "$status $(wc -l <<<"$out")"
}

# A socket that outlives its instances: no request is lost to a restart.
check_rolling_restart() {
    local instances good
    start rolling python3 "$here/process_rolling.py" "$room/rolling.sock" "$app" --threads 4
    started_or_die rolling grep -q started "$room/rolling.log"
    statuses -Z --parallel-max 8 "$url/rolling?ms=5&n=[1-4000]" \
        >"$room/load" 2>"$room/curl.log"
    stop "$pid" || true
    read -r instances good < <(tail -n 1 "$room/rolling.log")
    check_between "instances that took turns during 4000 requests" 5 1000 "$instances"
    check "all of them ended with status 0" "$instances" "$good"
    check "every request was answered with 200" "4000 200" \
        "$(sort "$room/load" | uniq -c | sed 's/^ *//' | paste -sd ' ')"
}

check_killed_worker
check_idle_stop
check_busy_stop
check_killed_parent
check_second_instance
check_failing_start
check_rolling_restart
finish
