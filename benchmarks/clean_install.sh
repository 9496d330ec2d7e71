#!/usr/bin/env bash
# The installer as a newcomer meets it: on a bare root (clean_root.sh), from a clone, without anything prepared.
#
#     benchmarks/clean_install.sh FOLDER            everything, in FOLDER/root; some half an hour on a quiet machine
#     benchmarks/clean_install.sh FOLDER STEP...    these only: bare refused dry full killed stopped installed again newer
#                                                   back gone
#     LEAN='ARCHIVE#sha256=HEX'                     has `newer` bring that Lean, too
#
# Prints a line for each thing that was looked at, `ok` or `NO`, and ends with 1 where one was not as it should be. The steps
# build on those before them. What a step said is in FOLDER/STEP.log. Takes root.
# shellcheck disable=SC2016,SC2329 # commands are given as text, and steps by name
set -uo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
FOLDER="${1:?name a folder}"
shift
RED=0
mkdir -p "$FOLDER"
FOLDER="$(cd "$FOLDER" && pwd -P)"
ROOT="$FOLDER/root"

enter() { "$HERE/clean_root.sh" enter "$ROOT" bash -c "cd /srv/assay && $1"; }

look() { # look NAME COMMAND...
    if "${@:2}"; then
        printf 'ok  %s\n' "$1"
    else
        printf 'NO  %s\n' "$1"
        RED=1
    fi
}

# Runs a command in the root, and looks at its exit status and at what it said.
try() { # try STEP CODE WORDS COMMAND
    local code=0 started="$SECONDS"
    enter "$4" >"$FOLDER/$1.log" 2>&1 </dev/null || code=$?
    look "$1: exit $2, which says \"$3\" ($((SECONDS - started)) s)" test "$code" = "$2"
    look "$1: it says so" grep -q -e "$3" "$FOLDER/$1.log"
}

# Every file of the root, with its size, but for what the run itself brings in and what tools cache.
tree() {
    find "$ROOT" -xdev \( -path "$ROOT/var/cache" -o -path "$ROOT/var/lib/apt" -o -path "$ROOT/root/.cache" -o -path "$ROOT/var/log" \
        -o -path "$ROOT/etc/resolv.conf" \) -prune -o -type f -printf '%P %s\n' | sort
}

in_use() { readlink "$ROOT/opt/assay/current"; }

bare() {
    rm -rf --one-file-system "$ROOT"
    "$HERE/clean_root.sh" make "$ROOT" && git clone --quiet "$HERE/.." "$ROOT/srv/assay" &&
        git -C "$ROOT/srv/assay" checkout --quiet --detach
    look "bare: no Python, no git, no sudo, no certificates" test ! -e "$ROOT/usr/bin/python3" -a ! -e "$ROOT/usr/bin/git" \
        -a ! -e "$ROOT/usr/bin/sudo" -a ! -e "$ROOT/etc/ssl/certs/ca-certificates.crt"
}

refused() {
    enter 'id newcomer >/dev/null 2>&1 || useradd --create-home --home-dir /srv/newcomer newcomer' >/dev/null 2>&1
    try refused 5 'there is no sudo' 'HOME=/srv/newcomer setpriv --reuid newcomer --regid newcomer --init-groups ./install.sh --user'
    look "refused: nothing was begun" test ! -e "$ROOT/srv/newcomer/.local"
}

dry() {
    tree >"$FOLDER/before"
    try dry 0 'would: system packages: apt-get install .*python3-venv' './install.sh --system --dry-run'
    tree >"$FOLDER/after"
    look "dry: nothing was changed" cmp "$FOLDER/before" "$FOLDER/after"
}

full() {
    try full 5 'MiB are free' 'mount -t tmpfs -o size=500m tmpfs /mnt && ./install.sh --system --prefix /mnt/assay; code=$?
        [ ! -e /mnt/assay/current ] && exit $code'
    # Room enough, as it seems, but not for as many files.
    try full-midway 5 'No space left on device' 'mount -t tmpfs -o size=8g,nr_inodes=9000 tmpfs /mnt && ./install.sh --system --prefix /mnt/assay
        code=$?; [ ! -e /mnt/assay/current ] && exit $code'
}

# Sends SIGNAL to what installs, once pip is at work. INT goes to the whole group, as a terminal does it.
broken_off() { # broken_off STEP SIGNAL CODE
    try "$1" "$3" 'packages: pip install' "set -m; ./install.sh --system & group=\$!
        until grep -zqs '[-]-editable' /proc/[0-9]*/cmdline || ! kill -0 \$group; do sleep 0.2; done 2>/dev/null
        sleep 3; kill -$2 -- -\$group; wait \$group"
    look "$1: nothing is in use" test ! -e "$ROOT/opt/assay/current"
}

installed() {
    try installed 0 'model code can be run safely here' './install.sh --system'
    look "installed: one release is in use" test -x "$ROOT/usr/local/bin/assay" -o -L "$ROOT/usr/local/bin/assay"
    in_use >"$FOLDER/first"
}

again() {
    tree >"$FOLDER/before"
    try again 0 'in use already' './install.sh --system'
    tree >"$FOLDER/after"
    look "again: nothing was changed" cmp "$FOLDER/before" "$FOLDER/after"
}

newer() {
    local with=""
    if [ -n "${LEAN:-}" ]; then
        cp "${LEAN%%#*}" "$ROOT/root/"
        with="--with lean=/root/$(basename "${LEAN%%#*}")#${LEAN#*#}"
    fi
    sed -i 's/^version = .*/version = "99.0.0"/' "$ROOT/srv/assay/pyproject.toml"
    try newer 0 'instead of' "./install.sh --system $with"
    look "newer: 99.0.0 is in use" grep -q 99.0.0 <<<"$(in_use)"
    if [ -n "$with" ]; then look "newer: doctor names the Lean" grep -q '^ok *lean .* from install.sh' "$FOLDER/newer.log"; fi
}

back() {
    try back 0 'instead of' './install.sh --system --rollback && assay --version'
    look "back: the first release is in use" test -n "$(in_use)" -a "$(in_use)" = "$(cat "$FOLDER/first")"
}

gone() {
    enter 'mkdir -p /root/.local/share/assay && touch /root/.local/share/assay/mine' >/dev/null 2>&1
    try gone 0 'remove every release' './install.sh --system --uninstall --purge'
    look "gone: no program, no release, no data" test ! -e "$ROOT/opt/assay" -a ! -L "$ROOT/usr/local/bin/assay" -a ! -e "$ROOT/root/.local/share/assay"
    try gone-twice 0 'there is nothing at' './install.sh --system --uninstall'
}

[ "$(id -u)" = 0 ] || { echo "clean_install.sh: this takes root" >&2; exit 5; }
[ $# -gt 0 ] || set -- bare refused dry full killed stopped installed again newer back gone
for step in "$@"; do
    case "$step" in
    killed) broken_off killed KILL 137 ;;
    stopped) broken_off stopped INT 130 ;;
    bare | refused | dry | full | installed | again | newer | back | gone) "$step" ;;
    *) echo "clean_install.sh: there is no step $step" >&2; exit 2 ;;
    esac
done
exit "$RED"
