# shellcheck shell=bash
# Makes an environment anew without losing the one that is there, and says that something long goes on.
#
# What always holds: programs in an environment name its path, so the new one is made at its place; the old one waits in
# `.before` inside of it, and is back as it was after a failure, after Ctrl-C, and at the next run after a kill.
# Sourced by install.sh, whose functions and variables it uses.
# shellcheck disable=SC2034

SIGN_SECONDS=20 # between two lines of what says that something goes on

put_aside() { # what is in VENV goes into VENV/.before, its records as a copy
    local before="$VENV/.before" entry
    [ -n "$(find "$VENV" -mindepth 1 -maxdepth 1 ! -name .assay -print -quit)" ] || return 0
    REPLACING=1
    mkdir "$before"
    cp -a "$VENV/.assay" "$before/.records" && mv "$before/.records" "$before/records"
    rm -f "$VENV/.assay/fingerprint"
    while IFS= read -r -d '' entry; do mv "$entry" "$before/"; done \
        < <(find "$VENV" -mindepth 1 -maxdepth 1 ! -name .assay ! -name .before -print0)
    touch "$before/whole"
}

# Also after a kill at any moment: before `whole` is there nothing new is, and nothing moves back while it is.
put_back() {
    local before="$VENV/.before" entry
    REPLACING=0
    if [ -e "$before/whole" ]; then
        find "$VENV" -mindepth 1 -maxdepth 1 ! -name .assay ! -name .before -exec rm -rf {} +
        rm -f "$before/whole"
    fi
    while IFS= read -r -d '' entry; do mv "$entry" "$VENV/"; done \
        < <(find "$before" -mindepth 1 -maxdepth 1 ! -name records ! -name .records -print0)
    if [ -d "$before/records" ]; then cp -a "$before/records/." "$VENV/.assay/"; fi
    rm -rf "$before"
}

# The new one works. What was fetched for sandboxes does not depend on the interpreter, and is checked again anyway.
put_away() {
    local before="$VENV/.before" kept
    REPLACING=0
    [ -d "$before" ] || return 0
    for kept in guest-packages bin/runsc; do
        if [ -e "$before/$kept" ] && [ ! -e "$VENV/$kept" ]; then mv "$before/$kept" "$VENV/$kept"; fi
    done
    rm -rf "$before"
}

# After a run that could not put anything back.
recover_environment() {
    [ -d "$VENV/.before" ] || return 0
    if [ -n "$(recorded fingerprint)" ]; then
        put_away
    elif plan "environment: putting the one back that an interrupted run had set aside"; then
        put_back
    fi
}

with_signs() { # with_signs COMMAND...: runs it, and says every SIGN_SECONDS that it goes on
    local result=0 owner="$BASHPID"
    (
        exec 9<&- # the lock is not this one's
        started="$(date +%s)"
        trap 'kill "${!:-$BASHPID}" 2>/dev/null; exit 0' TERM
        while kill -0 "$owner" 2>/dev/null; do
            sleep "$SIGN_SECONDS" >/dev/null 2>&1 &
            wait "$!"
            detail "still at it, $(($(date +%s) - started)) s so far"
        done
    ) &
    TICKER=$!
    "$@" || result=$?
    kill "$TICKER" 2>/dev/null || true
    TICKER=""
    return "$result"
}

pip_install() { with_signs pip install -qq "$@"; }
