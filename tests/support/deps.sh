#!/bin/bash
# Installs the Debian packages that a part of Weir needs and that are missing.
#
#   tests/support/deps.sh SET...        sets: build demo redis test ci bare
#   tests/support/deps.sh --list SET    prints its packages
#
# apt is called only where dpkg-query says that something is missing: as root directly,
# else through sudo; without sudo the packages are listed and the exit status is 1. No
# question is asked, and no service is started or enabled: nginx and redis-server would
# come up on ports 80 and 6379 of whoever tries Weir. For that a policy-rc.d of our own
# stands in /usr/sbin while apt runs. It refuses only what this call starts, and the one
# that stood there before is put back, also after an interruption.
set -euo pipefail
export LC_ALL=C

# invoke-rc.d knows this one path; a test of this script names another.
policy=${WEIR_POLICY_RC_D:-/usr/sbin/policy-rc.d}
saved=$policy.before-weir
self=$(readlink -f "$0")

packages_of() { # SET
    case $1 in
    build) echo gcc libc6-dev meson ninja-build pkgconf libjansson-dev libhiredis-dev \
        libfcgi-dev ;;
    demo) packages_of build && echo libsodium-dev nginx curl jq ;;
    redis) echo redis-server redis-tools ;;
    test) packages_of demo && packages_of redis && echo libcriterion-dev g++ python3 \
        python3-jsonschema groff-base lighttpd apache2-bin chromium fcgiwrap ;;
    ci) packages_of test && echo git clang clang-format-14 clang-tidy-14 \
        libclang-rt-14-dev cppcheck shellcheck ;;
    bare) echo debootstrap git ca-certificates ;;
    *) return 1 ;;
    esac
}

is_installed() { # PACKAGE
    local status
    status=$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null) || return 1
    [[ $'\n'$status$'\n' == *$'\ninstalled\n'* ]]
}

installed() {
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u
}

missing_of() { # PACKAGE...: prints those that are not installed
    local package
    for package in "$@"; do
        is_installed "$package" || echo "$package"
    done
}

# The policy refuses (101) below this process and asks the former policy, or allows,
# anywhere else: an upgrade that runs at the same time may restart its services, and a
# policy left behind by a kill -9 does no harm.
put_policy() {
    local born
    restore_policy
    born=$(cut -d ' ' -f 22 "/proc/$$/stat")
    if [[ -e $policy || -L $policy ]]; then
        mv "$policy" "$saved"
    fi
    cat >"$policy.new" <<END
#!/bin/sh
# Made by Weir's deps.sh: refuses to start services below process $$ while that runs.
pid=\$\$
while [ "\${pid:-0}" -gt 1 ]; do
    if [ "\$pid" = $$ ] && [ "\$(cut -d ' ' -f 22 /proc/$$/stat)" = $born ]; then
        exit 101
    fi
    pid=\$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/\$pid/status" 2>/dev/null)
done
[ -x '$saved' ] && exec '$saved' "\$@"
exit 0
END
    chmod 755 "$policy.new"
    mv "$policy.new" "$policy"
}

restore_policy() {
    if [[ -e $saved || -L $saved ]]; then
        mv "$saved" "$policy"
    elif [[ -f $policy ]] && grep -q "^# Made by Weir's deps.sh" "$policy"; then
        rm "$policy"
    fi
    rm -f "$policy.new"
}

# Keeps a service that a package of this call brought, or a socket that would start it,
# from coming up at the next boot.
disable_new_services() { # PACKAGE...
    local unit
    command -v systemctl >/dev/null || return 0
    for unit in $(dpkg-query -L "$@" | sed -n 's|^\(/usr\)\?/lib/systemd/system/||p' |
        grep -v -e / -e @ | grep -E '\.(service|socket)$' | sort -u); do
        if systemctl --quiet is-enabled "$unit" 2>/dev/null; then
            systemctl --quiet disable "$unit" >/dev/null 2>&1 || true
        fi
    done
}

apt() {
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold "$@" </dev/null >>"$log" 2>&1
}

# A fresh machine has no package lists, an old one stale ones: a first failure is answered
# with an update. Its lock has no waiting of its own.
apt_install() { # PACKAGE...
    local try
    apt install --no-install-recommends "$@" && return
    for try in 1 2 3 4 5; do
        apt update && break
        sleep $((try * 2))
    done
    apt install --no-install-recommends "$@"
}

install_as_root() { # PACKAGE...
    local all before failed=0
    # One call at a time; the lock is on a folder that is there anyway.
    exec 9</var/lib/dpkg
    flock 9
    mapfile -t all < <(missing_of "$@")
    ((${#all[@]})) || return 0
    log=$(mktemp)
    # Bash runs a trap once the apt-get in front has ended, never under its hands.
    trap 'restore_policy; rm -f "$log"' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    before=$(installed)
    put_policy
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
    apt_install "${all[@]}" || failed=1
    mapfile -t all < <(comm -13 <(echo "$before") <(installed))
    ((${#all[@]})) && disable_new_services "${all[@]}"
    mapfile -t all < <(missing_of "$@")
    if ((failed || ${#all[@]})); then
        tail -n 40 "$log" >&2
        echo "deps.sh: not installed: ${all[*]}" >&2
        exit 1
    fi
}

main() {
    local set wanted=() missing=()
    (($#)) || { sed -n '4s/^# *//p' "$self" >&2; exit 2; }
    case $1 in
    --as-root)
        shift
        install_as_root "$@"
        exit
        ;;
    --list)
        packages_of "${2:?}"
        exit
        ;;
    esac
    for set in "$@"; do
        packages_of "$set" >/dev/null || { echo "deps.sh: no set '$set'" >&2; exit 2; }
        # shellcheck disable=SC2207
        wanted+=($(packages_of "$set"))
    done
    command -v dpkg-query >/dev/null || {
        echo "deps.sh: this is no Debian; install yourself what stands for: ${wanted[*]}" >&2
        exit 1
    }
    mapfile -t missing < <(missing_of "${wanted[@]}" | sort -u)
    ((${#missing[@]})) || exit 0

    echo "Installing with apt-get: ${missing[*]}" >&2
    if [[ $(id -u) == 0 ]]; then
        install_as_root "${missing[@]}"
    elif command -v sudo >/dev/null; then
        # Without a terminal there is nobody to ask for a password.
        [[ -t 0 ]] && ask=() || ask=(-n)
        sudo "${ask[@]}" -- bash "$self" --as-root "${missing[@]}" || refuse "${missing[@]}"
    else
        refuse "${missing[@]}"
    fi
}

refuse() { # PACKAGE...
    echo "deps.sh: these packages are missing and could not be installed:" >&2
    printf '    %s\n' "$@" >&2
    exit 1
}

main "$@"
