#!/usr/bin/env bash
# A root of its own, made by debootstrap, for trying the installer and the units as a newcomer meets them.
#
#     benchmarks/clean_root.sh make FOLDER                a bare root in FOLDER, from a tarball that is kept beside it
#     benchmarks/clean_root.sh enter FOLDER COMMAND...    runs a command in it, with this machine's network
#     benchmarks/clean_root.sh boot FOLDER COMMAND...     the same as process 1 of a container, with no network
#
# What always holds: inside, no file system of this machine is mounted for writing; /tmp, /run, /dev, processes, host name
# and control groups are the root's own; kernel settings and modules cannot be changed. Package sources and certificates are
# this machine's. Takes root. SUITE, MIRROR, KEYRING and SCRIPT name another distribution for debootstrap.
set -euo pipefail

SUITE="${SUITE:-bookworm}"
readonly KEPT_FROM_US="-sys_module,-sys_time,-sys_rawio,-syslog,-wake_alarm,-mac_admin,-mac_override"

stop() { # stop CODE MESSAGE
    printf 'clean_root.sh: %s\n' "$2" >&2
    exit "$1"
}

mirror() {
    if [ -n "${MIRROR:-}" ]; then
        printf '%s\n' "$MIRROR"
        return
    fi
    apt-get update --print-uris 2>/dev/null | sed -n "s|^'\(.*\)/dists/$SUITE/\(In\)\?Release'.*|\1|p" | head -n 1
}

make_root() { # make_root FOLDER
    local from tarball
    [ ! -e "$1" ] || stop 2 "$1 is there: name a folder that is not"
    command -v debootstrap >/dev/null || stop 5 "debootstrap is missing: apt-get install debootstrap"
    tarball="$(dirname "$1")/$SUITE.tar"
    if [ ! -s "$tarball" ]; then
        from="$(mirror)"
        [ -n "$from" ] || stop 5 "apt's sources here have no $SUITE: name a mirror with MIRROR"
        debootstrap --variant=minbase ${KEYRING:+"--keyring=$KEYRING"} "$SUITE" "$1.new" "$from" ${SCRIPT:+"$SCRIPT"} >"$1.log" 2>&1 ||
            stop 5 "debootstrap could not make $SUITE: $(tail -n 1 "$1.log")"
        tar -C "$1.new" -cf "$tarball.new" .
        mv "$tarball.new" "$tarball"
        rm -rf "$1.new"
    fi
    mkdir "$1"
    tar -C "$1" -xf "$tarball"
}

# The folders with packages that this machine's pip looks into, one a line.
package_folders() {
    python3 -m pip config list 2>/dev/null | tr " '" '\n' | sed -n 's|^file://||; s|/simple$||; /^\/./p' | sort -u |
        while read -r place; do
            if [ -d "$place" ]; then printf '%s\n' "$place"; fi
        done
}

# Runs in a shell of its own: afterwards that one, and what it starts, has control groups below those of this machine.
own_groups() {
    local folder name
    for folder in /sys/fs/cgroup/* /sys/fs/cgroup; do
        if [ -L "$folder" ] || [ ! -w "$folder/cgroup.procs" ]; then continue; fi
        mkdir "$folder/assay-root-$$"
        for name in cpuset.cpus cpuset.mems; do # which version 1 has empty in a new group
            if [ -e "$folder/$name" ]; then cat "$folder/$name" >"$folder/assay-root-$$/$name"; fi
        done
        echo "$BASHPID" >"$folder/assay-root-$$/cgroup.procs" || true
    done
}

mount_groups() { # mount_groups FOLDER: as this machine has them, from the own group downwards
    local name
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        mount -t cgroup2 cgroup2 "$1"
        return
    fi
    mount -t tmpfs -o mode=755 tmpfs "$1"
    for name in /sys/fs/cgroup/*; do
        [ -e "$name/cgroup.procs" ] || continue
        name="$(basename "$name")"
        mkdir "$1/$name"
        case "$name" in
        systemd) mount -t cgroup -o none,name=systemd cgroup "$1/$name" ;;
        unified) mount -t cgroup2 cgroup2 "$1/$name" ;;
        *) mount -t cgroup -o "$name" cgroup "$1/$name" ;;
        esac
    done
    mount -o remount,ro "$1" # what this machine has not mounted, a systemd must not mount
}

inside() { # inside BOOT FOLDER COMMAND...: process 1 of new namespaces
    local boot="$1" root="$2" name place
    shift 2
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    for name in sys sysrq-trigger irq bus fs; do
        [ -e "$root/proc/$name" ] || continue
        mount --bind "$root/proc/$name" "$root/proc/$name"
        mount -o remount,bind,ro "$root/proc/$name"
    done
    mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
    mount_groups "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    for name in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
        IFS=: read -r name major minor <<<"$name"
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    for name in dev/shm tmp run; do mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/$name"; done
    chmod 755 "$root/run"
    hostname clean-root
    if [ "$boot" = 0 ]; then
        while read -r place; do
            mkdir -p "$root$place"
            mount --bind "$place" "$root$place"
            mount -o remount,bind,ro "$root$place"
        done < <(package_folders)
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        if [ -e /etc/pip.conf ]; then cp -L /etc/pip.conf "$root/etc/pip.conf"; fi
        # Where this machine trusts more than its distribution does, so must the root; otherwise the installer brings certificates.
        if [ -n "${SSL_CERT_FILE:-}" ]; then
            mkdir -p "$root/etc/ssl/certs"
            cp -L "$SSL_CERT_FILE" "$root/etc/ssl/certs/machine.crt"
        fi
    fi
    cd "$root"
    mkdir -p .outside
    pivot_root . .outside
    cd /
    umount -l /.outside
    rmdir /.outside
    local -a environ=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb)
    if [ "$boot" = 1 ]; then
        mount --make-rshared / # as a container's systemd expects it: it hands out credentials by mounts
        environ+=(container=clean-root)
    else
        for name in PIP_DEFAULT_TIMEOUT PIP_FIND_LINKS; do
            if [ -n "${!name:-}" ]; then environ+=("$name=${!name}"); fi
        done
        if [ -n "${SSL_CERT_FILE:-}" ]; then
            environ+=(SSL_CERT_FILE=/etc/ssl/certs/machine.crt PIP_CERT=/etc/ssl/certs/machine.crt)
        fi
    fi
    exec env -i "${environ[@]}" setpriv --bounding-set="$KEPT_FROM_US" "$@"
}

main() {
    local action="${1:-}" root="${2:-}"
    case "$action" in
    make)
        [ $# = 2 ] || stop 2 "make takes a folder"
        [ "$(id -u)" = 0 ] || stop 5 "this takes root"
        make_root "$2"
        ;;
    enter | boot)
        [ $# -ge 3 ] && [ -x "$root/usr/bin/env" ] || stop 2 "$action takes a folder made by \`make\`, and a command"
        shift 2
        root="$(cd "$root" && pwd -P)"
        local -a more=()
        local boot=0
        if [ "$action" = boot ]; then
            more=(--net)
            boot=1
        fi
        local rc=0
        (
            own_groups
            exec unshare --mount --pid --fork --kill-child --uts --ipc --cgroup ${more[@]+"${more[@]}"} -- \
                bash "$0" inside "$boot" "$root" "$@"
        ) || rc=$?
        find /sys/fs/cgroup -depth -path "*/assay-root-$$*" -type d -exec rmdir {} + 2>/dev/null || true
        exit "$rc"
        ;;
    inside)
        shift
        [ "$$" = 1 ] || stop 2 "\`inside\` is for this script alone"
        inside "$@"
        ;;
    *) stop 2 "make FOLDER, enter FOLDER COMMAND..., or boot FOLDER COMMAND..." ;;
    esac
}

main "$@"
