#!/bin/bash
# CPU a request costs behind a real nginx, app and nginx together: plain libfcgi without a
# limiter against Weir without and with one.
#
#   bench/spine.sh [ROUNDS [SECONDS]]        default: 7 rounds of 2 seconds each
#   bench/redis.sh [ROUNDS [SECONDS]]        the same over a Redis of its own, against
#                                            libfcgi with one blocking hiredis call
#   bench/fcgx.sh [ROUNDS [SECONDS]]         what libfcgi's form costs: a handler of Weir's
#                                            against one of libfcgi's as an endpoint, in a
#                                            loop of its own, and under weir-run
#
# The variants take turns within a round, since the machine's other load comes and goes;
# what counts is the median over the rounds, and the best against the best. Builds into
# build-bench/; needs nginx, wrk, jq and libfcgi-dev.
set -euo pipefail
export LC_ALL=C

rounds=${1:-7}
seconds=${2:-2}
connections=${connections:-32}
with_redis=${with_redis:-}
with_fcgx=${with_fcgx:-}
rate=${rate:-} # requests a second; empty: as fast as answers come
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
variants=(libfcgi plain nonblocking plain_limited nonblocking_limited)
[ -z "$with_redis" ] || variants=(libfcgi libfcgi_redis plain_limited nonblocking_limited)

[ -z "$with_fcgx" ] || variants=(plain fcgx fcgx_one pull run libfcgi)

for program in nginx wrk meson ninja awk; do
    command -v "$program" >/dev/null || {
        echo "$0: $program is missing" >&2
        exit 1
    }
done
[ -d "$build" ] || meson setup "$build" "$root" --buildtype=release -Dtests=false \
    -Ddemo=false -Dbench=true >/dev/null
ninja -C "$build" bench/hello bench/on_fd0 bench/libfcgi_hello bench/libfcgi_redis \
    bench/pull_hello bench/pace tools/weir-run tools/weir-run.so >/dev/null

room=$(mktemp -d /tmp/weir-bench-XXXXXX)
chmod 755 "$room"
pids=()
clean() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$room"
}
trap clean EXIT
trap 'exit 130' INT TERM

# ---- the three servers -----------------------------------------------------------------

store=shm redis=
if [ -n "$with_redis" ]; then
    redis-server --port 0 --unixsocket "$room/redis.sock" --dir "$room" --save '' \
        --appendonly no >/dev/null &
    pids+=($!) redis=$! store=redis:unix:$room/redis.sock
    until redis-cli -s "$room/redis.sock" ping >/dev/null 2>&1; do sleep 0.05; done
    "$build/bench/on_fd0" "$room/libfcgi_redis" "$build/bench/libfcgi_redis" 48 \
        "$room/redis.sock" &
    pids+=($!) libfcgi_redis=$!
fi
"$build/bench/on_fd0" "$room/libfcgi" "$build/bench/libfcgi_hello" 48 &
pids+=($!) libfcgi=$!
pull=
if [ -n "$with_fcgx" ]; then
    "$build/bench/on_fd0" "$room/pull" "$build/bench/pull_hello" 7 &
    pids+=($!) pull=$!
    "$build/bench/on_fd0" "$room/run" "$build/tools/weir-run" \
        "$build/bench/libfcgi_hello" 7 &
    pids+=($!) run=$!
fi
"$build/bench/hello" --listen "unix:$room/weir" --socket-mode 0666 \
    --store "$store" --log-level warning &
pids+=($!) weir=$!

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
user=
[ "$(id -u)" = 0 ] && user="user root;"
cat >"$room/nginx.conf" <<CONF
$user
daemon off;
worker_processes 2;
pid $room/nginx.pid;
error_log $room/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path $room/body;
    fastcgi_temp_path $room/fastcgi;
    proxy_temp_path $room/proxy;
    scgi_temp_path $room/scgi;
    uwsgi_temp_path $room/uwsgi;
    keepalive_requests 1000000000;
    upstream libfcgi { server unix:$room/libfcgi; keepalive 32; keepalive_requests 1000000000; }
    upstream libfcgi_redis {
        server unix:$room/libfcgi_redis; keepalive 32; keepalive_requests 1000000000;
    }
    upstream pull { server unix:$room/pull; keepalive 32; keepalive_requests 1000000000; }
    upstream run { server unix:$room/run; keepalive 32; keepalive_requests 1000000000; }
    upstream weir { server unix:$room/weir; keepalive 32; keepalive_requests 1000000000; }
    server {
        listen 127.0.0.1:$port;
        include /etc/nginx/fastcgi_params;
        fastcgi_keep_conn on;
        location /libfcgi_redis { fastcgi_pass libfcgi_redis; }
        location /libfcgi { fastcgi_pass libfcgi; }
        location /pull { fastcgi_pass pull; }
        location /run { fastcgi_pass run; }
        location / { fastcgi_pass weir; }
    }
}
CONF
nginx -c "$room/nginx.conf" 2>/dev/null &
pids+=($!) nginx=$!
for _ in $(seq 100); do
    [ "$(curl -s --noproxy '*' -o /dev/null -w '%{http_code}' \
        "http://127.0.0.1:$port/plain_limited")" = 200 ] && break
    sleep 0.05
done

# ---- measuring --------------------------------------------------------------------------

# Nanoseconds of CPU that the threads of these processes and of their children have used.
cpu_ns() { # PID...
    local pid child files=()
    for pid in "$@"; do
        for child in "$pid" $(cat "/proc/$pid/task/$pid/children"); do
            files+=("/proc/$child"/task/*/schedstat)
        done
    done
    awk '{ sum += $1 } END { printf "%.0f", sum }' "${files[@]}"
}

redis_ns() {
    if [ -n "$redis" ]; then cpu_ns "$redis"; else echo 0; fi
}

# drive PATH SECONDS: how many requests were answered, and p50. At $rate requests a second
# where that is set, else as fast as answers come.
drive() {
    if [ -n "$rate" ]; then
        "$build/bench/pace" "$port" "/$1" "$rate" "$2" >"$room/pace" || {
            cat "$room/pace" >&2
            return 1
        }
        awk '{ print $1, $2 "us" }' "$room/pace"
        return
    fi
    wrk --latency -t1 -c"$connections" -d"$2s" "http://127.0.0.1:$port/$1" >"$room/wrk"
    if grep -q 'Non-2xx' "$room/wrk"; then
        cat "$room/wrk" >&2
        return 1
    fi
    awk '$1 == "50%" { p50 = $2 } / requests in / { print $1, p50 }' "$room/wrk"
}

# One line: variant, app's microseconds a request, nginx's, requests a second,
# Redis's microseconds, p50.
measure() { # VARIANT
    local app=$weir path=$1 app_before nginx_before redis_before requests p50
    [ "$1" = libfcgi ] && app=$libfcgi
    [ "$1" = libfcgi_redis ] && app=$libfcgi_redis
    [ "$1" = pull ] && app=$pull
    [ "$1" = run ] && app=$run
    drive "$path" 1 >/dev/null
    app_before=$(cpu_ns "$app") nginx_before=$(cpu_ns "$nginx")
    redis_before=$(redis_ns)
    read -r requests p50 < <(drive "$path" "$seconds")
    awk -v name="$1" -v app=$(($(cpu_ns "$app") - app_before)) \
        -v nginx=$(($(cpu_ns "$nginx") - nginx_before)) -v requests="$requests" \
        -v seconds="$seconds" -v redis=$(($(redis_ns) - redis_before)) \
        -v p50="$p50" 'BEGIN {
            printf "%s %.2f %.2f %.0f %.2f %s\n", name, app / requests / 1000,
                   nginx / requests / 1000, requests / seconds, redis / requests / 1000,
                   p50 }'
}

for round in $(seq "$rounds"); do
    for variant in "${variants[@]}"; do
        measure "$variant" >>"$room/figures"
    done
    echo "round $round of $rounds" >&2
done

if [ -n "$with_redis" ]; then
    echo "variant, app, nginx, requests/s, Redis (us a request), p50;" \
        "${rate:+at $rate a second, over }$connections connections"
    sort -s -k1,1 "$room/figures"
fi

# ---- the table --------------------------------------------------------------------------

printf '%-22s %8s %8s %8s %8s %9s %9s\n' 'CPU us a request' app nginx total best \
    'of first' 'requests/s'
sort "$room/figures" | awk -v order="${variants[*]}" '
    function median(list, n,    i, j, t) {
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
                t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
            }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { k = ++count[$1]; app[$1, k] = $2; nginx[$1, k] = $3; rate[$1, k] = $4 }
    END {
        n = split(order, names, " ")
        for (v = 1; v <= n; v++) {
            name = names[v]
            for (k = 1; k <= count[name]; k++) {
                a[k] = app[name, k]; x[k] = nginx[name, k]; r[k] = rate[name, k]
                s[k] = app[name, k] + nginx[name, k]
            }
            total = median(s, count[name]); best = s[1]
            if (v == 1) { total_1 = total; best_1 = best }
            printf "%-22s %8.1f %8.1f %8.1f %8.1f %4.2f/%4.2f %9.0f\n", name,
                   median(a, count[name]), median(x, count[name]), total, best,
                   total / total_1, best / best_1, median(r, count[name])
        }
    }'
