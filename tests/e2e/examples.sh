#!/bin/bash
# The programs of examples/, which are written for libfcgi, answer alike whether they are
# built with libfcgi alone, inside Weir's chain, or run there by weir-run: examples_ask.py
# asks each the same, through nginx and by FastCGI itself, and says what may differ. What a
# program writes to its error stream goes to the web server's log with libfcgi, to its own
# with Weir.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"
room_open

# Which build's socket is meant stands in a field of the request. Nothing is kept back by
# nginx: a body arrives in the pieces in which it was sent, and an answer is read no faster
# than the client reads it.
# shellcheck disable=SC2016
nginx_start 0 <<END
client_max_body_size 8m;
location / {
    include /etc/nginx/fastcgi_params;
    fastcgi_request_buffering off;
    fastcgi_max_temp_file_size 0;
    fastcgi_pass unix:$room/\${http_x_build}.sock;
}
END
# Not for the programs, which take every WEIR_ variable for an option.
for name in "${!WEIR_@}"; do
    export -n "${name?}"
done
[[ $(id -u) != 0 ]] || export WEIR_SOCKET_GROUP=www-data
export WEIR_MAX_BODY=8M

# start_example NAME BUILD: libfcgi, weir, or run, which is libfcgi's under weir-run.
start_example() {
    local socket=$room/$2.sock program=("$build/examples/$1")
    case $2 in
    weir) program=("$build/examples/$1-weir") ;;
    run) program=("$build/tools/weir-run" "${program[@]}") ;;
    esac
    rm -f "$socket"
    case $1 in
    hello | stdio) start "$1.$2" python3 "$here/on_descriptor_0.py" "$socket" "${program[@]}" ;;
    *) start "$1.$2" "${program[@]}" "$socket" ;;
    esac
    started_or_die "$1.$2" unix_listens "$socket"
}

gone='^gone before .* of 20000000 bytes'

# ask EXAMPLE BUILD: its answers are in $room/EXAMPLE.BUILD then.
ask() {
    local status=0
    start_example "$1" "$2"
    python3 "$here/examples_ask.py" "$1" "$room/$2.sock" "$nginx_port" "$2" \
        >"$room/$1.$2" 2>"$room/error" || status=$?
    cat "$room/error"
    check "$1, $2: the status of each answer" 0 "$status"
    if [[ $1 == threads ]]; then
        wait_for 10 grep -q "$gone" "$room/$1.$2.log" || true
        check "$1, $2: it stops when its client is gone" 1 \
            "$(grep -c "$gone" "$room/$1.$2.log")"
    fi
    status=0
    stop "$pid" || status=$?
    check "$1, $2: it ends by SIGTERM" 0 "$status"
}

# answer EXAMPLE BUILD CASE
answer() {
    awk -F '\t' -v name="$3" '$1 == name { print $2 }' "$room/$1.$2"
}

# compare EXAMPLE BUILD: with libfcgi's own, case by case.
compare() {
    local name seen
    while IFS=$'\t' read -r name seen; do
        [[ $name != differs* ]] || continue
        check "$1, $2: $name" "$seen" "$(answer "$1" "$2" "$name")"
    done <"$room/$1.libfcgi"
}

for example in hello body threads stdio; do
    for kind in libfcgi weir run; do
        ask $example $kind
    done
    compare $example weir
    compare $example run
done

check "an exit status: libfcgi's, Weir's, weir-run's" "1 0 0" \
    "$(for kind in libfcgi weir run; do answer body $kind "differs, exit status"; done | xargs)"
check "a short body: libfcgi's says so, Weir's never sees it" "1 0 0" \
    "$(for kind in libfcgi weir run; do
        answer body $kind "differs, a short body" | grep -c '{content-type: text/plain}' || true
    done | xargs)"
complaint='no such way to read'
check "libfcgi: a complaint is in nginx's log" 1 "$(grep -c "$complaint" "$room/nginx/error.log")"
check "weir: both are in the program's" 2 "$(grep -c ": $complaint" "$room/body.weir.log")"

# What the chain refuses never reaches the program, which complains of each such page.
export WEIR_LIMIT="2/60s"
start_example hello weir
check "weir: a limit from the environment" $'404\n404\n429\n429' \
    "$(statuses -H 'X-Build: weir' "http://127.0.0.1:$nginx_port/limited?[1-4]")"
stop "$pid" || true
check "weir: what the program saw" 2 "$(grep -c 'no page /limited' "$room/hello.weir.log")"
finish
