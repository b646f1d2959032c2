#!/bin/bash
# Runs the commands of README.md in a Debian 12 that has nothing else installed.
#
#   tests/bare.sh [FOLDER]         as root; FOLDER (/var/tmp) has 4 GB free
#
# debootstrap makes it with this machine's own apt settings: sources, keys and proxy are
# those that apt uses here at this moment. The commit that is checked out here is cloned
# into it, the commands run there as root, with apt, and then, without a network, as an
# ordinary user. All of it has mounts and process ids of its own, which end with it; nothing
# in there keeps a package from starting its service but what Weir does against it. The
# exit status is 0 only if every command succeeded, no service ran or would run at the next
# boot, and nothing was left.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
suite=bookworm
folder=
running=
begin=$SECONDS

say() { echo "[$((SECONDS - begin)) s] $*"; }
die() {
    say "$*" >&2
    exit 1
}

clean_up() {
    trap '' HUP INT TERM
    if [[ -n $running ]]; then
        kill -TERM "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    [[ -z $folder ]] || rm -rf --one-file-system "$folder"
}

# Runs in the background, so that a signal ends it at once.
step() {
    local status=0
    "$@" </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}

# ---- making it ----------------------------------------------------------------------

# The address and the keyring of the suite, as apt has them here.
find_mirror() {
    local targets
    # shellcheck disable=SC2016 # apt fills these in
    targets=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
        'Created-By: Packages')
    [[ -n $targets ]] || {
        step apt-get -q update
        # shellcheck disable=SC2016
        targets=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
            'Created-By: Packages')
    }
    mirror=$(awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }' \
        <<<"$targets")
    [[ -n $mirror ]] || die "apt has no source for $suite here"
}

use_proxy() {
    local proxy
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [[ -z ${proxy:-} || $proxy == DIRECT ]] || export http_proxy=$proxy
    eval "proxy=; $(apt-config shell proxy Acquire::https::Proxy)"
    [[ -z ${proxy:-} || $proxy == DIRECT ]] || export https_proxy=$proxy
}

# systemd is there as on any installed Debian, so that one sees what it would start.
make_debian() {
    say "debootstrap"
    step debootstrap --variant=minbase --include=systemd-sysv,ca-certificates "$suite" \
        "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 || {
        tail -n 20 "$folder/debootstrap.log" >&2
        die "debootstrap failed"
    }
    # debootstrap's own, for the time of its work.
    [[ ! -e $root/usr/sbin/policy-rc.d ]] || die "debootstrap left a policy-rc.d"
}

copy_apt_settings() {
    local path
    rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
    for path in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/auth.conf \
        /etc/apt/auth.conf.d /etc/apt/keyrings /etc/apt/trusted.gpg \
        /etc/apt/trusted.gpg.d /usr/share/keyrings /etc/resolv.conf /etc/hosts \
        /usr/local/share/ca-certificates /etc/ssl/certs; do
        [[ -e $path ]] || continue
        rm -rf "${root:?}$path"
        cp -aL "$path" "$root$path" 2>/dev/null || true # a link may lead nowhere
    done
    # What apt does after an update here may need programs that are not there.
    apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' \
        >"$root/etc/apt/apt.conf.d/00machine"
}

clone_commit() {
    local commit
    commit=$(git rev-parse HEAD)
    [[ -z $(git status --porcelain) ]] || say "uncommitted changes are not part of this"
    git clone -q --no-hardlinks --no-checkout . "$root/root/weir"
    git -C "$root/root/weir" -c advice.detachedHead=false checkout -q "$commit"
    say "commit $commit"
}

# ---- inside -------------------------------------------------------------------------

# The part that runs as process 1 of the new Debian, with these functions and no others.
# shellcheck disable=SC2317
inside() {
    local phase=$1
    enter
    "phase_$phase"
}

# shellcheck disable=SC2317
enter() {
    local device
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/old"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t tmpfs -o mode=755 run "$root/run"
    mkdir "$root/run/lock"
    cd "$root"
    pivot_root . old
    umount -l /old
    rmdir /old
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    export HOME=/root USER=root TMPDIR=/tmp
    unset WEIR_BUILD CI
}

# command_of WHO COMMAND: one command of README.md, in WHO's clone.
# shellcheck disable=SC2317
command_of() {
    local who=$1 command=$2 home begin=$SECONDS status=0 log=/var/tmp/output
    home=$(getent passwd "$who" | cut -d : -f 6)
    if [[ $who == root ]]; then
        bash -c "cd $home/weir && $command" </dev/null >"$log" 2>&1 || status=$?
    else
        setpriv --reuid "$who" --regid "$who" --init-groups env HOME="$home" USER="$who" \
            bash -c "cd $home/weir && $command" </dev/null >"$log" 2>&1 || status=$?
    fi
    if ((status)); then
        { grep -a -A 12 FAILED "$log" || tail -n 60 "$log"; } | sed 's/^/    /'
    fi
    echo "$who: $command: exit status $status after $((SECONDS - begin)) s: $(tail -n 1 "$log")"
    nothing_runs "$who: $command" || status=1
    ((status == 0)) || failed=1
}

# Nothing but this shell is alive, and no package's service would be at the next boot.
# shellcheck disable=SC2317
nothing_runs() {
    local pid unit bad=0
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        [[ $pid != "$$" && $pid != 1 && -n $(tr -d '\0' <"/proc/$pid/cmdline" 2>/dev/null) ]] ||
            continue
        echo "$1: left running: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        bad=1
    done
    for unit in nginx redis-server lighttpd apache2 fcgiwrap.service fcgiwrap.socket; do
        if [[ $(systemctl is-enabled "$unit" 2>/dev/null) == enabled ]]; then
            echo "$1: $unit would start at the next boot"
            bad=1
        fi
    done
    for pid in /run/nginx.pid /run/lighttpd.pid /run/redis/* /usr/sbin/policy-rc.d; do
        [[ ! -e $pid ]] || {
            echo "$1: left: $pid"
            bad=1
        }
    done
    for pid in /tmp/weir*; do
        [[ ! -e $pid ]] || {
            echo "$1: left: $pid"
            bad=1
        }
    done
    return "$bad"
}

# As a newcomer who is root: the first command installs what it needs, the second more.
# shellcheck disable=SC2317
phase_root() {
    failed=0
    nothing_runs "before"
    command_of root './demo_app/run.sh --check'
    command_of root './demo_app/run.sh --check --redis'
    command_of root './tests/run.sh'
    useradd -m -s /bin/bash newcomer
    cp -a /root/weir /home/newcomer/weir
    rm -rf /home/newcomer/weir/build
    chown -R newcomer:newcomer /home/newcomer/weir
    exit "$failed"
}

# Without a network: the demo on its own port, started, asked and interrupted; and all of
# it as an ordinary user.
# shellcheck disable=SC2317
phase_user() {
    failed=0
    command_of root 'bash .ci/steps/50-interrupt.sh'
    command_of newcomer './demo_app/run.sh --check'
    command_of newcomer './demo_app/run.sh --check --redis'
    command_of newcomer './tests/run.sh'
    command_of newcomer 'bash .ci/steps/50-interrupt.sh'
    exit "$failed"
}

# in_debian PHASE [OPTION-OF-UNSHARE...]: when the shell in there ends, all that it began
# and mounted ends with it.
in_debian() {
    local phase=$1
    shift
    export root
    export -f inside enter command_of nothing_runs phase_root phase_user
    step unshare --mount --pid --fork --kill-child "$@" bash -c "set -euo pipefail; $bring_up
        inside $phase"
}

# ---- all of it ----------------------------------------------------------------------

[[ $(id -u) == 0 ]] || die "only root can make another Debian"
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
tests/support/deps.sh bare
folder=$(mktemp -d "${1:-/var/tmp}/weir-bare.XXXXXX")
root=$folder/root
failed=0
use_proxy
find_mirror
make_debian
copy_apt_settings
clone_commit
bring_up=
say "as root"
in_debian root || failed=1
bring_up='ip link set lo up;'
say "without a network, as an ordinary user"
in_debian user --net || failed=1
! grep -qF "$folder" /proc/self/mountinfo || die "something is still mounted"
say "done"
exit "$failed"
