#!/bin/bash
# weir-run through a real nginx: a program of libfcgi alone and Debian's fcgiwrap, both as
# they are, get limits, errors and a drain; what can't be helped is refused before it is
# started.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"
room_open

# Not for weir-run and its programs, which take every WEIR_ variable for an option.
for name in "${!WEIR_@}"; do
    export -n "${name?}"
done
run=$build/tools/weir-run
app=$build/tests/libfcgi_app
socket=$room/app.sock
args=()
[[ $(id -u) != 0 ]] || args=(--socket-group www-data)

mkdir "$room/cgi"
cat >"$room/cgi/hello" <<'END'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\nhello %s ' "$QUERY_STRING"
cat
END
chmod 755 "$room/cgi/hello"
nginx_start 0 <<END
location /cgi/ {
    include /etc/nginx/fastcgi_params;
    fastcgi_param SCRIPT_FILENAME $room\$fastcgi_script_name;
    fastcgi_pass unix:$socket;
}
location / {
    include /etc/nginx/fastcgi_params;
    fastcgi_pass unix:$socket;
}
END
url=http://127.0.0.1:$nginx_port

# start_run [WORD...]: weir-run with these words behind --listen.
start_run() {
    rm -f "$socket"
    start app "$run" --listen "unix:$socket" "${args[@]}" "$@"
    started_or_die app unix_listens "$socket"
}
many() { # COUNT PATH: "3 x 200, 2 x 429"
    statuses "$url$2?n=[1-$1]" | sort | uniq -c |
        awk '{ printf "%s%d x %s", (NR > 1 ? ", " : ""), $1, $2 }'
}
runs_of() { sed -n 's/ runs$//p' "$room/app.log"; }
ask() { # WHAT STATUS BODY [CURL ARGUMENT...]
    request "${@:4}"
    check "$1: status" "$2" "$status"
    [[ $3 == - ]] || check "$1: body" "$3" "$body"
}

# ---- a program of libfcgi alone ------------------------------------------------------

start_run --limit 'GET /few 3/60s' --limit 'POST /few name=2/60s@all' --max-body 64k "$app"
ask "a path" 200 "GET /any 0" "$url/any"
ask "a body" 200 "POST /any 5" -d hello "$url/any"
ask "HEAD" 200 - -I "$url/any"
ask "a body that is too large" 413 - -d "$(printf %70000d 1)" "$url/any"
request "$url/large"
check "1 MiB: status" 200 "$status"
check "1 MiB: bytes" $((1048576 + 13)) "$(stat -c %s "$room/request/body")"
check "GET of a limited path" "3 x 200, 2 x 429" "$(many 5 /few)"
ask "the refusal" 429 - "$url/few"
check "the refusal's code" TooManyRequests "$(jq -r .code <<<"$body")"
check_between "the refusal's Retry-After" 1 60 "$(header Retry-After)"
ask "POST has its own" 200 "POST /few 1" -d x "$url/few"
check "RateLimit" '"name";r=1;t=60' "$(header RateLimit)"
ask "PUT has none" 200 "PUT /few 1" -X PUT -d x "$url/few"
check "stderr is logged" yes "$(grep -q 'run 0' "$room/app.log" && echo yes)"

# What is in flight is answered, and the program ends by itself.
request_seconds=10 statuses "$url/slow" >"$room/slow" &
slow=$!
wait_for 5 grep -q ' slow$' "$room/app.log" || die "/slow doesn't reach the program"
begin=$(date +%s%N)
status=0
stop "$pid" || status=$?
check_between "milliseconds to the end" 0 3000 $((($(date +%s%N) - begin) / 1000000))
check "its exit status" 0 "$status"
wait "$slow" || true
check "the request in flight" 200 "$(cat "$room/slow")"
check "what reached it" 10 "$(runs_of)"

# Its own socket, that it opens itself; limits from the environment.
rm -f "$socket" "$room/app.log"
WEIR_LIMIT=2/60s start app "$run" "${args[@]}" "$app" "$socket"
started_or_die app unix_listens "$socket"
[[ $(id -u) != 0 ]] || chgrp www-data "$socket"
check "a socket of its own" "2 x 200, 3 x 429" "$(many 5 /any)"
stop "$pid" || true
check "what reached it there" 2 "$(runs_of)"

# ---- Debian's fcgiwrap: fcgi_stdio, processes of its own --------------------------------

fcgiwrap=$(PATH=$PATH:/usr/sbin command -v fcgiwrap) || die "fcgiwrap is not installed"
start_run --limit '/cgi/hello 4/60s' "$fcgiwrap"
ask "a script" 200 "hello a=b text" -d text "$url/cgi/hello?a=b"
ask "a script that isn't there" 403 - "$url/cgi/none"
check "a limited script" "3 x 200, 2 x 429" "$(many 5 /cgi/hello)"
stop "$pid" || true

start_run --limit 6/60s "$fcgiwrap" -c 3
parent=$pid
check "three processes share the counters" "6 x 200, 4 x 429" "$(many 10 /cgi/hello)"
children=$(pgrep -P "$parent")
stop "$parent" || true
for child in $children; do
    kill "$child" 2>/dev/null || true # fcgiwrap leaves them running
done

# ---- what can't be helped ---------------------------------------------------------------

refused() { # WHAT STATUS TEXT [WORD...]
    local seen=0 text
    text=$("$run" "${@:4}" </dev/null 2>&1) || seen=$?
    check "$1: exit status" "$2" "$seen"
    check "$1: says" yes "$(grep -qF -- "$3" <<<"$text" && echo yes || echo "$text")"
}
refused "no program" 64 "no program" --limit 1/1s
refused "a program that isn't there" 66 "not found in PATH" no-such-program
refused "a folder" 66 "Is a directory" /etc
refused "a script" 66 "is a script" "$room/cgi/hello"
refused "no libfcgi" 66 "is not linked with libfcgi.so" /bin/true
refused "libfcgi inside" 66 "is not linked with libfcgi.so" "$build/tests/libfcgi_inside"
refused "a static program" 66 "is statically linked" /sbin/ldconfig
refused "an option that isn't one" 64 "--no-such: no such option" --no-such 1 "$app"
refused "a limit that isn't one" 64 '"3" is no rule' --limit '3 a minute' "$app"
refused "a path that isn't one" 64 '/a//b' --limit '/a//b 1/1s' "$app"
refused "two sockets" 64 "one socket" --listen "unix:$room/1" --listen "unix:$room/2" "$app"
refused "a variable that is no option" 64 "--no-such: no such option" \
    --no-such=1 --check "$app"
for length in 1 16 63 64 200 4000; do
    head -c "$length" "$app" >"$room/cut"
    chmod 755 "$room/cut"
    refused "a program cut at $length" 66 "$room/cut" "$room/cut"
done
if [[ $(id -u) == 0 ]]; then
    cp "$app" "$room/setuid"
    chown www-data "$room/setuid"
    chmod 4755 "$room/setuid"
    refused "a set-user-ID program" 66 "set-user-ID" "$room/setuid"
fi
refused "all is well" 0 "" --check --limit 1/1s "$app"
finish
