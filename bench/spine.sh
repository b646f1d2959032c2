#!/bin/bash
# CPU a request costs behind a real nginx, app and nginx together: plain libfcgi without a
# limiter against Weir without and with one.
#
#   bench/spine.sh [ROUNDS [SECONDS]]        default: 7 rounds of 2 seconds each
#
# The variants take turns within a round, since the machine's other load comes and goes;
# what counts is the median over the rounds, and the best against the best. Builds into
# build-bench/; needs nginx, wrk, jq and libfcgi-dev.
set -euo pipefail
export LC_ALL=C

rounds=${1:-7}
seconds=${2:-2}
connections=32
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
variants=(libfcgi plain nonblocking plain_limited nonblocking_limited)

for program in nginx wrk meson ninja awk; do
    command -v "$program" >/dev/null || {
        echo "$0: $program is missing" >&2
        exit 1
    }
done
[ -d "$build" ] || meson setup "$build" "$root" --buildtype=release -Dtests=false \
    -Ddemo=false -Dbench=true >/dev/null
ninja -C "$build" bench/hello bench/on_fd0 bench/libfcgi_hello >/dev/null

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

"$build/bench/on_fd0" "$room/libfcgi" "$build/bench/libfcgi_hello" 48 &
pids+=($!) libfcgi=$!
"$build/bench/hello" --listen "unix:$room/weir" --socket-mode 0666 --log-level warning &
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
    upstream weir { server unix:$room/weir; keepalive 32; keepalive_requests 1000000000; }
    server {
        listen 127.0.0.1:$port;
        include /etc/nginx/fastcgi_params;
        fastcgi_keep_conn on;
        location /libfcgi { fastcgi_pass libfcgi; }
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

# One line: variant, app's microseconds a request, nginx's, requests a second.
measure() { # VARIANT
    local app=$weir path=$1 app_before nginx_before requests
    [ "$1" = libfcgi ] && app=$libfcgi
    wrk -t1 -c"$connections" -d1s "http://127.0.0.1:$port/$path" >/dev/null
    app_before=$(cpu_ns "$app") nginx_before=$(cpu_ns "$nginx")
    wrk -t1 -c"$connections" -d"${seconds}s" "http://127.0.0.1:$port/$path" >"$room/wrk"
    requests=$(awk '/ requests in / { print $1 }' "$room/wrk")
    if grep -q 'Non-2xx' "$room/wrk"; then
        cat "$room/wrk" >&2
        return 1
    fi
    awk -v name="$1" -v app=$(($(cpu_ns "$app") - app_before)) \
        -v nginx=$(($(cpu_ns "$nginx") - nginx_before)) -v requests="$requests" \
        -v seconds="$seconds" 'BEGIN {
            printf "%s %.2f %.2f %.0f\n", name, app / requests / 1000,
                   nginx / requests / 1000, requests / seconds }'
}

for round in $(seq "$rounds"); do
    for variant in "${variants[@]}"; do
        measure "$variant" >>"$room/figures"
    done
    echo "round $round of $rounds" >&2
done

# ---- the table --------------------------------------------------------------------------

printf '%-22s %8s %8s %8s %8s %8s %9s\n' 'CPU us a request' app nginx total best \
    'of lib' 'requests/s'
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
