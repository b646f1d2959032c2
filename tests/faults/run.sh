#!/bin/bash
# Plays faults to running apps and says, for each, its bound and what was seen.
#
#   tests/faults/run.sh [--build FOLDER] [--short] [--list] [ROW]...
#
#   --build   where the programs are (build); they must be built
#   --short   few runs, and 250 ms of room over every bound: for a machine that does other
#             things. Without it: 100 runs or more where one takes less than a second, else
#             5 or more; the slowest counts, against the bound itself
#   ROW       runs these rows alone, by id or its beginning: F3, F
#
# A row is a file rows/ID_what.py or .sh, alone and executable, run in a private folder
# with these in its environment:
#
#   WEIR_BUILD     the build folder, absolute
#   FAULTS_SHORT   1 or empty
#   FAULTS_PLANTED 1 or empty: prove.sh has switched a defence off and expects red
#
# It prints a line for each thing that must hold, tab-separated:
#
#   ok|FAILED <tab> what, with the bound <tab> what was seen
#
# with what the clients saw and what the app's own counters say as lines of their own, or
# as one that holds only where they agree (faults.py and faults.sh have functions for it).
# Other lines are shown as they are where the row fails. A row that prints no such line,
# ends with another status than 0 or takes longer than its time has failed.
#
# The closing line is `N passed, N failed`; the exit status is 0 only if none failed and
# some ran.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../support/lib.sh
. "$here/../support/lib.sh"

export PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
export FAULTS_SHORT='' FAULTS_PLANTED=${FAULTS_PLANTED:-}
wanted=()
list=0
row_seconds=600

while (($#)); do
    case $1 in
    --build) build=$(cd "${2:?}" && pwd) && shift ;;
    --short) FAULTS_SHORT=1 row_seconds=60 ;;
    --list) list=1 ;;
    -*) sed -n 's/^#   \(tests.faults.run.sh .*\)/usage: \1/p' "$0" >&2 && exit 2 ;;
    *) wanted+=("$1") ;;
    esac
    shift
done

# is_wanted ID: "F" stands for all of F, "F1" not for F10.
is_wanted() {
    local one
    ((${#wanted[@]})) || return 0
    for one in "${wanted[@]}"; do
        [[ $1 == "$one" || ($one =~ ^[A-Z]$ && $1 == "$one"*) ]] && return
    done
    return 1
}

# show ID <OUTPUT: prints the row's lines and counts them; any other is shown if it failed.
show() {
    local id=$1 holds what seen others=() lines=0 bad=0
    while IFS=$'\t' read -r holds what seen; do
        case $holds in
        ok) passed=$((passed + 1)) ;;
        FAILED) failed=$((failed + 1)) bad=1 ;;
        *) others+=("$holds $what $seen") && continue ;;
        esac
        lines=$((lines + 1))
        printf '%-4s %-6s %s: %s\n' "$id" "$holds" "$what" "$seen"
    done
    if ((lines == 0 || row_status != 0)); then
        bad=1
        failed=$((failed + 1))
        printf '%-4s FAILED %s\n' "$id" "it ended with status $row_status after $lines lines"
    fi
    if ((bad && ${#others[@]})); then
        printf '         %s\n' "${others[@]}" | tail -n 30
    fi
}

# run_row ID SCRIPT: in a session and a folder of its own; both are gone afterwards.
run_row() {
    local begin=$SECONDS
    mkdir -m 711 "$room/$1"
    row_status=0
    (cd "$room/$1" && exec setsid env --default-signal=INT,QUIT WEIR_BUILD="$build" \
        timeout --foreground --kill-after=10 "$row_seconds" "$2") \
        </dev/null >"$room/$1.out" 2>&1 &
    pid=$!
    started+=("$pid")
    wait "$pid" || row_status=$?
    kill -KILL -- "-$pid" 2>/dev/null || true
    forget "$pid"
    show "$1" <"$room/$1.out"
    rm -rf "${room:?}/$1"
    seconds[$1]=$((SECONDS - begin))
}

declare -A seconds
if ((!list)); then
    room_open
    begin=$SECONDS
fi
while read -r script; do
    id=${script##*/}
    id=${id%%_*}
    is_wanted "$id" || continue
    if ((list)); then
        sed -n "2{s/^# *//; s/\"\"\"//g; s/\.*$//; s/^/$id  /; p}" "$script"
        continue
    fi
    run_row "$id" "$script"
done < <(find "$here/rows" -type f -perm -u+x | sort -V)
((list)) && exit 0
for id in $(printf '%s\n' "${!seconds[@]}" | sort -V); do
    printf '%s %s s; ' "$id" "${seconds[$id]}"
done
say "together $((SECONDS - begin)) s"
finish
