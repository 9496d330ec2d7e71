#!/usr/bin/env bash
# The units under a real systemd: process 1 of a container with nothing in it but a root of its own (clean_root.sh boot).
#
#     benchmarks/clean_root.sh make FOLDER
#     git clone . FOLDER/srv/assay && benchmarks/clean_root.sh enter FOLDER /srv/assay/install.sh --system
#     benchmarks/real_systemd.sh FOLDER
#
# Prints a line for each thing that was looked at, `ok` or `NO`, and ends with 1 where one was not as docs/operate.md has it.
# Takes root, some three minutes, and ends the container when it ends.
set -euo pipefail

HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
ROOT="${1:?name a root in which install.sh --system was run}"
SYSTEMD=""

finish() {
    if [ -n "$SYSTEMD" ]; then kill -KILL "$SYSTEMD" 2>/dev/null || true; fi # process 1: the rest goes with it
    wait
}

prepare() {
    "$HERE/clean_root.sh" enter "$ROOT" bash -e <<'SH'
command -v /lib/systemd/systemd >/dev/null && command -v busctl >/dev/null || {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends systemd dbus >/dev/null 2>&1
}
# As docs/operate.md says, and two users who are nothing to the appliance or own it.
id assay >/dev/null 2>&1 || useradd --system --home-dir /var/lib/assay --shell /usr/sbin/nologin assay
id stranger >/dev/null 2>&1 || useradd --no-create-home stranger
cp /opt/assay/current/units/assay.service /opt/assay/current/units/assay-broker.service /etc/systemd/system/
cp /opt/assay/current/units/assay-broker.socket /etc/systemd/system/
rm -rf /etc/systemd/system/assay.service.d
mkdir -p /etc/credstore && (umask 077 && echo a-key-of-a-teacher >/etc/credstore/teacher-key)
systemctl --quiet disable assay assay-broker 2>/dev/null || true
SH
}

boot() {
    "$HERE/clean_root.sh" boot "$ROOT" /lib/systemd/systemd </dev/null >/dev/null 2>&1 &
    local caller=$! tries child
    for ((tries = 0; tries < 300; tries++)); do
        sleep 0.1
        # The script, its subshell, unshare, and process 1 of the new namespace.
        child="$(pgrep -P "$caller" | head -n 1 || true)"
        [ -n "$child" ] || continue
        SYSTEMD="$(pgrep -P "$child" -x systemd | head -n 1 || true)"
        if [ -n "$SYSTEMD" ]; then return; fi
    done
    echo "NO      systemd did not start"
    exit 1
}

[ "$(id -u)" = 0 ] || { echo "real_systemd.sh: this takes root" >&2; exit 5; }
[ -x "$ROOT/opt/assay/current/.venv/bin/assay" ] || { echo "real_systemd.sh: there is no installation in $ROOT/opt/assay" >&2; exit 2; }
trap finish EXIT
prepare
boot
nsenter -t "$SYSTEMD" -m -p -u -i -n -C env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root \
    SYSTEMD_PAGER='' SYSTEMD_COLORS=0 bash -c "$(cat "$HERE/real_systemd_trial.sh")"
