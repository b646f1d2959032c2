# shellcheck shell=bash
# What rows in shell share: sourced after support/lib.sh by tests/faults/rows/*.sh, which
# call tell, same and within in place of check, and exit with 0 whatever held.

faults_room_ms=0 # over every bound, for a machine that does other things
[[ -z ${FAULTS_SHORT:-} ]] || faults_room_ms=250

# runs LONG SHORT: prints the one that counts now.
runs() {
    if [[ -n ${FAULTS_SHORT:-} ]]; then echo "$2"; else echo "$1"; fi
}

# tell ok|FAILED WHAT SEEN
tell() {
    printf '%s\t%s\t%s\n' "$@"
}

# same WHAT EXPECTED SEEN
same() {
    if [[ $2 == "$3" ]]; then
        tell ok "$1" "$3"
    else
        tell FAILED "$1" "expected $2, seen $3"
    fi
}

# within WHAT BOUND_MS TIME_MS...: whole milliseconds; the slowest counts.
within() {
    local what=$1 bound=$2 slowest=0 one holds=ok
    shift 2
    for one in "$@"; do
        if [[ ! $one =~ ^[0-9]+$ ]]; then
            holds=FAILED slowest=$one && break
        fi
        ((one <= slowest)) || slowest=$one
    done
    [[ $holds == FAILED ]] || ((slowest <= bound + faults_room_ms && $# > 0)) || holds=FAILED
    ((faults_room_ms)) && what+=" within $bound ms + $faults_room_ms ms" ||
        what+=" within $bound ms"
    tell "$holds" "$what" "$# runs, slowest $slowest ms"
}
