#!/usr/bin/env bash
# What real_systemd.sh looks at, run inside its container. Its own exit status says whether all of it was as it should be.
# shellcheck disable=SC2016,SC2329 # what is looked at is given as text, and then run
set -uo pipefail
export ASSAY_DATA=/var/lib/assay ASSAY_SANDBOX__BROKER=/run/assay/broker.sock ASSAY_AUDIT__HEAD=/var/log/assay/head
RED=0

now() { cut -d' ' -f1 /proc/uptime; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f", to - from }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
of() { systemctl show "$1" -p "$2" --value; }
as() { HOME=/ setpriv --reuid "$1" --regid "$1" --init-groups -- "${@:2}"; }

look() { # look NAME FIGURE COMMAND...
    local name="$1" figure="$2"
    shift 2
    if "$@" >/run/said 2>&1; then
        printf 'ok      %-14s %s\n' "$name" "$figure"
    else
        printf 'NO      %-14s %s\n' "$name" "$figure"
        tail -n 3 /run/said | sed 's/^/        /'
        RED=1
    fi
}

# Waits until UNIT is active with another process than OLD; SECONDS at most.
new_process() { # new_process UNIT OLD SECONDS
    local from
    from="$(now)"
    while less "$(since "$from")" "$3"; do
        case "$(of "$1" ActiveState) $(of "$1" MainPID)" in
        "active 0" | "active $2") ;; # systemd has not seen its end yet
        active*) return 0 ;;
        esac
        sleep 0.1
    done
    return 1
}

journal_is_json() { # journal_is_json UNIT...: every line that the units' own processes wrote
    local -a units=()
    for unit in "$@"; do units+=(-u "$unit"); done
    journalctl -b "${units[@]}" -o json --no-pager | /opt/assay/current/.venv/bin/python -I -c '
import json, sys
lines = [entry["MESSAGE"] for entry in map(json.loads, sys.stdin) if entry.get("_TRANSPORT") == "stdout"]
assert lines, "nothing was logged"
for line in lines:
    assert "event" in json.loads(line), line'
}

exposure() { # exposure UNIT: as the running systemd judges it
    systemd-analyze security --no-pager "$1" 2>/dev/null | sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p'
}

hardened() { less "$(exposure "$1")" "$2"; }

tries=0
until systemctl is-system-running 2>/dev/null | grep -q -x 'running\|degraded' || [ "$((tries += 1))" -gt 600 ]; do sleep 0.2; done
look systemd "$(systemctl --version | head -n 1 | cut -d' ' -f2), $(systemctl is-system-running)" test -d /run/systemd/system

from="$(now)"
systemctl start assay-broker assay
look start "both are ready after $(since "$from") s (Type=$(of assay Type), $(of assay StatusText))" \
    test "$(of assay ActiveState)/$(of assay-broker ActiveState)" = active/active
look rights "the daemon: user $(ps -o user= -p "$(of assay MainPID)" 2>/dev/null || stat -c %U "/proc/$(of assay MainPID)"), no capability" \
    grep -qx 'CapEff:.0000000000000000' "/proc/$(of assay MainPID)/status"
look status "assay status: root, and the daemon's user" eval 'assay status && as assay assay status'
as stranger assay status >/run/refusal 2>&1
look stranger "another user is refused: $(head -n 1 /run/refusal | cut -c1-80)" grep -q 'may not open' /run/refusal
look sandbox "a sandbox of the broker's unit: $(assay sandbox run -c 'print(6*7)' 2>&1 | tail -n 1 | cut -c1-60)" \
    eval "assay sandbox run -c 'print(6*7)' | grep -qx 42"
from="$(now)"
timeout 300 assay submit --question 'find x with 7x+3=45' --check '7*x+3 == 45' --wait >/run/job 2>&1
code=$?
look job "$(since "$from") s from the command to the answer: $(tail -n 1 /run/job | cut -c1-60)" test "$code" = 0
look credential "the teacher's key reaches the daemon, and no variable or property" eval '
    test "$(cat /run/credentials/assay.service/teacher-key)" = a-key-of-a-teacher &&
    ! tr "\0" "\n" <"/proc/$(of assay MainPID)/environ" | grep -q a-key && ! systemctl show assay | grep -q a-key'
look credential-of "it is for the daemon's user alone" eval '! as stranger cat /run/credentials/assay.service/teacher-key'
look hardening "assay.service: $(exposure assay.service) (bar: 1.5)" hardened assay.service 1.5
look hardening "assay-broker.service: $(exposure assay-broker.service) (bar: 5)" hardened assay-broker.service 5

pid="$(of assay MainPID)"
from="$(now)"
kill -KILL "$pid"
look killed "kill -9 of the daemon" new_process assay "$pid" 30
took="$(since "$from")"
look back "it serves again after $took s (bar: 10)" eval "assay status && less $took 10"
pid="$(of assay-broker MainPID)" daemon="$(of assay MainPID)"
from="$(now)"
kill -KILL "$pid"
look killed "kill -9 of the broker" new_process assay-broker "$pid" 30
look back "sandboxes start again after $(since "$from") s; the daemon stayed" \
    eval "assay sandbox run -c 'print(6*7)' | grep -qx 42 && test '$(of assay MainPID)' = $daemon"

mkdir -p /etc/systemd/system/assay.service.d
printf '[Service]\nWatchdogSec=15\nTimeoutStopSec=5\n' >/etc/systemd/system/assay.service.d/quick.conf
systemctl daemon-reload
systemctl restart assay
pid="$(of assay MainPID)"
sleep 20
look watchdog "20 s with a watchdog of 15: signs of life come" test "$(of assay MainPID)" = "$pid"
from="$(now)"
kill -STOP "$pid"
look watchdog "stopped by SIGSTOP" new_process assay "$pid" 60
look watchdog "another daemon after $(since "$from") s" eval "grep -q 'Watchdog timeout' <(journalctl -b -u assay --no-pager)"
rm -r /etc/systemd/system/assay.service.d
systemctl daemon-reload
systemctl restart assay

from="$(now)"
systemctl stop assay
took="$(since "$from")"
look stop "the daemon ended after $took s (bar: 10), $(of assay Result)" eval "less $took 10 && test '$(of assay Result)' = success"
systemctl stop assay-broker
look held "a broker that was stopped is started by who asks: the socket is systemd's" eval "
    test \"\$(of assay-broker ActiveState)\" = inactive && assay sandbox run -c 'print(6*7)' | grep -qx 42 &&
    test \"\$(of assay-broker ActiveState)\" = active"
from="$(now)"
systemctl stop assay-broker.socket assay-broker
took="$(since "$from")"
look stop "the broker ended after $took s, $(of assay-broker Result)" eval "less $took 10 && test '$(of assay-broker Result)' = success"
look journal "every line of both units is JSON" journal_is_json assay assay-broker
look "assay stop" "ends the daemon, and systemd leaves it ended" \
    eval 'systemctl start assay && assay stop && sleep 8 && test "$(of assay ActiveState)" = inactive'
# The key cannot be there: a broker that ends with its reason, and those who wait for it.
systemctl stop assay assay-broker.socket assay-broker
mkdir -p /etc/systemd/system/assay-broker.service.d
printf '[Service]\nEnvironment=ASSAY_SANDBOX__FOLDER=/proc/nowhere\n' >/etc/systemd/system/assay-broker.service.d/broken.conf
systemctl daemon-reload
systemctl start assay-broker.socket
for _ in $(seq 30); do timeout 60 assay sandbox run -c 'print(1)' >/run/refused 2>&1 && break; done
look limit "a broker that cannot start is not tried for ever: $(tail -n 1 /run/refused | cut -c1-70)" \
    eval 'test "$(of assay-broker.socket ActiveState)" = failed'
rm -r /etc/systemd/system/assay-broker.service.d
systemctl daemon-reload
systemctl reset-failed assay-broker.socket assay-broker
exit "$RED"
