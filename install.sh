#!/usr/bin/env bash
# Installs Assay into a virtual environment of its own, beside this file; with --user or --system as releases side by
# side in a folder of their own (install/releases.sh).
#
# What always holds: nothing outside the environment is changed except by apt, and by apt only for packages that are
# missing; the system's package sources are only read; no driver is touched; a rerun of a sound installation changes
# nothing. Bash, because arguments with spaces travel in arrays. Exit codes: 0 ok, 2 usage, 5 infrastructure; with
# --demo and --test those of what was run.
set -euo pipefail

# The only addresses in this file, each a vendor's own and each with a variable that replaces it.
RUNSC_URL="${ASSAY_RUNSC_URL:-https://storage.googleapis.com/gvisor/releases/release/latest}"
TORCH_INDEX="${ASSAY_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}"

# The Debian build of runsc that was measured (docs/decisions.md), and what its package must hash to.
readonly PINNED_SUITE=trixie
readonly PINNED_RUNSC=0.0~20240729.0-4+b7
readonly PINNED_SHA256=3c25a5130dfac2f71237d5baad56ac86a255de87a0400f11b36a555156dc325a
readonly OLDEST_RUNSC=20230501 # before that date runsc does not know the platform systrap
readonly DISK_MIB=3000
readonly VLLM_DISK_MIB=5000 # while it is built; about 2500 stay

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
readonly ROOT
VENV="$ROOT/.venv"
MODE=install
DRY=0
PURGE=0
WITH_CUDA=0
WITH_VLLM="" # yes, no, or nothing: only where there is one already
WITH_LEAN="" # from where, with its SHA-256 (install/lean.sh)
WITH_KERNEL=""
WITH_SMOLLM2="" # yes, or nothing (install/smollm2.sh)
SCOPE=""   # user or system: releases side by side
WANTED=""  # the version that --version names
# shellcheck disable=SC2034
PREFIX="" # of releases (install/releases.sh); without them --prefix is the folder of the environment
OFFLINE="" # a folder with everything that would be fetched
# shellcheck disable=SC2034
WHEELS="" # a folder that --wheels fills (install/wheels.sh)
INNER=()   # flags that a release's own install.sh is given
GUEST_PACKAGES=1
EXTRA=()
SCRATCH=""
CHECKS="" # the process of style and types beside the tests
TICKER="" # the process that says that something goes on (install/replacing.sh)
REPLACING=0 # whether an environment waits aside (install/replacing.sh)
SAID=0      # whether the reason why it ends was said
AFTER=0     # whether the installation is done, and what follows has an exit code of its own
PY=""
ADMIN=() # how a command gets the rights of root: nothing, or sudo

usage() {
    cat <<'TEXT'
Usage: ./install.sh [flags] [-- arguments]

Installs what is missing and ends with `assay doctor`.

  --demo          then run `assay demo`; what follows -- goes to it, for example: --demo -- --fresh
  --test          install the developers' tools too, then check style and types and run every test; what follows --
                  goes to pytest
  --dry-run       say what would be done and why; change nothing
  --uninstall     remove the environment, the runsc in it and what was recorded; never your data
  --purge         with --uninstall: remove the data folder as well (models, ledger, artifacts)
  --prefix DIR    the folder of the environment (default: .venv beside this file)
  --with-cuda     take the ordinary build of torch although no NVIDIA GPU was found (several GB)
  --with vllm     build the environment of the engine vllm as well, beside the other one: 2.5 GB, some minutes;
                  --test --with vllm runs the tests of that engine, too. --without vllm leaves one that is there as it is
  --with lean=PLACE#sha256=HEX
                  a Lean 4 for proofs, beside the environment. PLACE: an archive or the address of one, whose SHA-256 is
                  given so or in ARCHIVE.sha256; or the folder of a toolchain, such as elan's, which is copied
  --with kernel=PROGRAM
                  a second kernel for proofs: a checker of Lean's exports, such as nanoda or lean4lean, which is copied
  --with smollm2  a small chat model to try things with, beside the environment: 95 MB; --test fetches it as well
  --without-guest-packages
                  code in sandboxes gets the standard library only: no numpy, scipy, sympy
  --help          this text

As a program of yours or of this machine, versions side by side:

  --user, --system
                  copy this checkout to PREFIX/releases/VERSION, make its environment there, and use it with one link;
                  PREFIX is ~/.local/lib/assay or /opt/assay unless --prefix names another
  --version V     the release V that is there, or that revision of this checkout
  --rollback      use the release before again, or the one that --version names
  --offline DIR   fetch nothing: wheels and runsc from DIR, and DIR/SHA256SUMS has to list every file of it
  --wheels DIR    fill DIR with what --offline takes on another machine of this kind, after installing here

  ASSAY_PYTHON        the interpreter to use: Python 3.11 or newer that can make virtual environments
  ASSAY_TORCH_INDEX   a package index with CPU builds of torch
  ASSAY_BIN           where --user and --system put the link to the program (~/.local/bin, /usr/local/bin)
  ASSAY_RUNSC_URL     a folder with releases of runsc: <it>/<architecture>/runsc and runsc.sha512
TEXT
}

say() { printf '%s\n' "==> $*"; }
detail() { printf '%s\n' "    $*"; }

fail() { # fail CODE MESSAGE HINT
    SAID=1
    printf '%s\n' "install.sh: $2" >&2
    if [ -n "${3:-}" ]; then printf '%s\n' "  what to do: $3" >&2; fi
    exit "$1"
}

stopped() { # stopped CODE: by a signal
    trap - INT TERM
    SAID=1
    if [ -z "${INSTALL_SH_WITHIN:-}" ]; then printf '%s\n' "install.sh: stopped; run it again, and it goes on" >&2; fi
    exit "$1"
}

# Says what a step does and why, and whether it should be done now: `plan "..." && do it`.
plan() {
    if [ "$DRY" = 1 ]; then
        printf '%s\n' "would: $*"
        return 1
    fi
    say "$*"
}

clean_up() {
    local code=$?
    trap '' INT TERM
    if [ -n "$TICKER" ]; then kill "$TICKER" 2>/dev/null || true; fi
    if [ -n "$CHECKS" ]; then kill "$CHECKS" 2>/dev/null || true; fi
    if [ "$REPLACING" = 1 ]; then
        put_back
        detail "the environment in $VENV is the one from before again"
    fi
    if [ -n "$SCRATCH" ]; then rm -rf "$SCRATCH"; fi
    case "$SAID$AFTER,$code" in
    00,0 | 00,5) ;;
    # A command that has no message of ours: a full disk, a folder that cannot be written.
    00,*) fail 5 "a step failed with status $code; its message is above" "see to what it says, and run this again: it goes on" ;;
    esac
}

scratch() {
    if [ -z "$SCRATCH" ]; then
        SCRATCH="$(mktemp -d "${TMPDIR:-/tmp}/assay-install.XXXXXX")"
        trap clean_up EXIT
    fi
}

parse() {
    while [ $# -gt 0 ]; do
        case "$1" in
        --demo | --test | --uninstall | --rollback)
            [ "$MODE" = install ] || fail 2 "--$MODE and $1 exclude each other" "give one of them"
            MODE="${1#--}"
            ;;
        --dry-run) DRY=1 ;;
        --purge) PURGE=1 ;;
        --with-cuda)
            WITH_CUDA=1
            INNER+=("$1")
            ;;
        --without-guest-packages)
            GUEST_PACKAGES=0
            INNER+=("$1")
            ;;
        --with | --without)
            case "$1 ${2:-}" in
            "--with vllm") WITH_VLLM=yes ;;
            "--without vllm") WITH_VLLM=no ;;
            "--with smollm2") WITH_SMOLLM2=yes ;;
            "--with lean="?*) WITH_LEAN="${2#lean=}" ;;
            "--with kernel="?*) WITH_KERNEL="${2#kernel=}" ;;
            "--with lean" | "--with lean=") fail 2 "--with lean needs to know from where" "./install.sh --help names what it can be" ;;
            *) fail 2 "$1 needs the name of a part" "./install.sh $1 vllm" ;;
            esac
            case "$2" in vllm | smollm2) INNER+=("$1" "$2") ;; esac
            shift
            ;;
        --user | --system)
            [ -z "$SCOPE" ] || [ "$SCOPE" = "${1#--}" ] || fail 2 "--user and --system exclude each other" "give one of them"
            SCOPE="${1#--}"
            ;;
        --version)
            [ -n "${2:-}" ] || fail 2 "--version needs a version" "./install.sh --user --version 0.1.0"
            WANTED="$2"
            shift
            ;;
        --offline)
            [ -d "${2:-}" ] || fail 2 "--offline needs a folder with wheels" "./install.sh --offline /media/assay-wheels"
            OFFLINE="$(cd "$2" && pwd -P)"
            INNER+=(--offline "$OFFLINE")
            shift
            ;;
        --wheels)
            [ -n "${2:-}" ] || fail 2 "--wheels needs a folder" "./install.sh --wheels wheels"
            [ "$MODE" = install ] || fail 2 "--$MODE and --wheels exclude each other" "give one of them"
            MODE=wheels
            # shellcheck disable=SC2034
            case "$2" in /*) WHEELS="$2" ;; *) WHEELS="$PWD/$2" ;; esac
            shift
            ;;
        --prefix)
            [ $# -ge 2 ] && [ -n "$2" ] || fail 2 "--prefix needs a folder" "./install.sh --prefix /opt/assay"
            case "$2" in
            /*) VENV="${2%/}" ;;
            *) VENV="$PWD/${2%/}" ;;
            esac
            [ -n "$VENV" ] || fail 2 "--prefix / is not a folder for an environment" "name a folder of its own"
            # shellcheck disable=SC2034
            PREFIX="$VENV"
            shift
            ;;
        --help | -h)
            usage
            exit 0
            ;;
        --)
            shift
            EXTRA=("$@")
            break
            ;;
        *) fail 2 "unknown argument: $1" "./install.sh --help lists the flags; arguments for the demo or the tests follow --" ;;
        esac
        shift
    done
    [ "$PURGE" = 0 ] || [ "$MODE" = uninstall ] || fail 2 "--purge works with --uninstall only" ""
    if [ -z "$SCOPE" ]; then
        [ "$MODE" != rollback ] && [ -z "$WANTED" ] || fail 2 "--rollback and --version need --user or --system" "give one of them"
    else
        [ "$MODE" != demo ] && [ "$MODE" != test ] && [ "$MODE" != wheels ] || fail 2 "--$MODE works in a checkout, not with --$SCOPE" "remove one of the two"
    fi
    if [ -n "$WITH_LEAN" ]; then
        lean_place "$WITH_LEAN"
        INNER+=(--with "lean=$WITH_LEAN")
    fi
    if [ -n "$WITH_KERNEL" ]; then
        kernel_place
        INNER+=(--with "kernel=$WITH_KERNEL")
    fi
    [ ${#EXTRA[@]} = 0 ] || [ "$MODE" = demo ] || [ "$MODE" = test ] ||
        fail 2 "arguments after -- need --demo or --test" ""
}

# --- 1. system packages -----------------------------------------------------------------------------------------------

can_make_environments() {
    "$1" -I -c 'import sys; assert sys.version_info >= (3, 11); import ensurepip, venv' >/dev/null 2>&1
}

# The interpreter that an environment was made with, whatever is first on PATH while it is activated: the environment is
# what may be replaced.
outside_environment() { # outside_environment PATH
    local folder
    folder="$(cd "$VENV/bin" 2>/dev/null && pwd -P)" || folder=""
    if [ -n "$folder" ] && [ "$(cd "$(dirname "$1")" && pwd -P)" = "$folder" ]; then
        "$1" -I -c 'import sys; print(sys._base_executable)' 2>/dev/null || true
    else
        printf '%s\n' "$1"
    fi
}

# The machine's own `python3` when it will do, since that is what its people know; else the newest named one.
find_python() {
    local name path
    PY=""
    for name in ${ASSAY_PYTHON:+"$ASSAY_PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        path="$(command -v "$name" 2>/dev/null || true)"
        if [ -n "$path" ]; then path="$(outside_environment "$path")"; fi
        if [ -n "$path" ] && can_make_environments "$path"; then
            PY="$path"
            return 0
        fi
        if [ "$name" = "${ASSAY_PYTHON:-}" ]; then
            fail 5 "ASSAY_PYTHON=$name is not Python 3.11 or newer with venv and ensurepip" "name another one, or unset it"
        fi
    done
    return 1
}

find_rights() {
    if [ "$(id -u)" = 0 ]; then
        ADMIN=()
    elif command -v sudo >/dev/null 2>&1; then
        ADMIN=(sudo)
    else
        return 1
    fi
}

# What is fetched nowhere is all in one folder, whose sums were checked before any of it is used.
use_offline() {
    [ -n "$OFFLINE" ] || return 0
    [ -s "$OFFLINE/SHA256SUMS" ] || fail 5 "$OFFLINE has no SHA256SUMS" \
        "where it was filled: cd $OFFLINE && sha256sum *.whl runsc >SHA256SUMS"
    (cd "$OFFLINE" && sha256sum --check --strict --quiet SHA256SUMS) >&2 ||
        fail 5 "files in $OFFLINE are not those of its SHA256SUMS" "copy them again"
    local file names
    names="$(sed -n 's/^[0-9a-f]\{64\} [ *]\(\.\/\)\?//p' "$OFFLINE/SHA256SUMS")"
    # Not wheels alone: pip would take sources from there, too, and what a page of links leads to.
    for file in "$OFFLINE"/* "$OFFLINE"/.[!.]*; do
        case "${file##*/}" in SHA256SUMS | .assay-wheels) continue ;; esac
        [ -f "$file" ] || continue
        grep -qxF -- "${file##*/}" <<<"$names" ||
            fail 5 "${file##*/} is not in $OFFLINE/SHA256SUMS" "remove it, or add its sum where it came from"
    done
    PIP_FIND_LINKS="$OFFLINE" # a list for pip, with spaces between
    case "$OFFLINE" in *[!0-9A-Za-z/._-]*) PIP_FIND_LINKS="file://$(printf '%s' "$OFFLINE" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g; s/%2f/\//g')" ;; esac
    export PIP_NO_INDEX=1 PIP_FIND_LINKS
    say "offline: everything comes from $OFFLINE, whose sums hold"
}

system_packages() {
    local missing=() why="" pair
    if ! find_python; then
        missing+=(python3 python3-venv)
        why="no Python 3.11 or newer that can make a virtual environment"
    fi
    if [ ! -x /usr/bin/python3 ] && [ ${#missing[@]} = 0 ]; then
        missing+=(python3)
        why="sandboxes get the distribution's interpreter, and it is not there"
    fi
    if [ ! -s /etc/ssl/certs/ca-certificates.crt ] && [ -z "${SSL_CERT_FILE:-}" ]; then
        missing+=(ca-certificates)
        why="${why:+$why; }no certificates to check downloads with"
    fi
    if lean_needs_zstd; then
        missing+=(zstd)
        why="${why:+$why; }the archive of Lean is packed with zstd"
    fi
    if ! command -v setpriv >/dev/null 2>&1; then
        missing+=(util-linux)
        why="${why:+$why; }no setpriv, which ties a sandbox's life to its parent's"
    fi
    for pair in git:git ssh-keygen:openssh-client ip:iproute2 npm:npm; do
        if [ "$MODE" = test ] && ! command -v "${pair%%:*}" >/dev/null 2>&1; then
            missing+=("${pair#*:}")
            why="${why:+$why; }some tests start ${pair%%:*}"
        fi
    done
    if [ ${#missing[@]} = 0 ]; then
        say "system packages: nothing is missing ($PY, $("$PY" -I -c 'import platform; print(platform.python_version())'))"
        return 0
    fi
    plan "system packages: apt-get install ${missing[*]} ($why)" || return 0
    [ -z "$OFFLINE" ] || fail 5 "system packages are missing: ${missing[*]} ($why)" "install them from your own medium; --offline fetches nothing"
    command -v apt-get >/dev/null 2>&1 ||
        fail 5 "apt-get is missing" "install the equivalents of ${missing[*]} by hand and run this again"
    if ! find_rights; then
        fail 5 "installing system packages needs root, and there is no sudo" \
            "as root: apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    fi
    # A fresh image has no lists, and old lists name packages that are gone: an update is cheap beside either.
    scratch
    if ! "${ADMIN[@]}" apt-get update -qq >"$SCRATCH/apt.log" 2>&1 ||
        ! "${ADMIN[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${missing[@]}" >>"$SCRATCH/apt.log" 2>&1 </dev/null; then
        tail -n 20 "$SCRATCH/apt.log" >&2
        fail 5 "apt-get could not install ${missing[*]}" "read its message above; a mirror may be down"
    fi
    find_python || fail 5 "this system has no Python 3.11 or newer" \
        "Debian 12 and Ubuntu 24.04 have one; elsewhere install one and set ASSAY_PYTHON"
    APT_INSTALLED="${missing[*]}"
}

# A browser for one test: 103 MB to fetch and 400 MB of disk, so it is asked of nobody else, and nothing depends on it.
browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null 2>&1; then return 0; fi
    done
    if [ -n "$OFFLINE" ] || ! command -v apt-get >/dev/null 2>&1 || ! find_rights; then
        say "no Chromium: the test of \`assay tui --web\` in a real browser is skipped"
        return 0
    fi
    plan "browser: apt-get install chromium (103 MB; one test shows the screens in a real one)" || return 0
    scratch
    if "${ADMIN[@]}" apt-get update -qq >"$SCRATCH/browser.log" 2>&1 &&
        "${ADMIN[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            chromium >>"$SCRATCH/browser.log" 2>&1 </dev/null; then
        return 0
    fi
    tail -n 3 "$SCRATCH/browser.log" >&2
    detail "Chromium could not be installed; that test is skipped and says so"
}

# --- 2. the virtual environment ---------------------------------------------------------------------------------------

# Exit 0 when every file that the installed packages recorded is there in its size: about a quarter of a second, and
# what a full disk, a killed pip or a careless rm leaves behind shows.
environment_is_sound() {
    if [ ! -x "$VENV/bin/python" ]; then
        echo "its interpreter is not there"
        return 1
    fi
    "$VENV/bin/python" -IB - "$ROOT" <<'PYTHON'
import csv, importlib.util, os, sys, sysconfig

site = sysconfig.get_path("purelib")
if not os.path.isdir(site):
    sys.exit("its packages are for another version of Python")
for entry in os.listdir(site):
    if not entry.endswith(".dist-info"):
        continue
    record = os.path.join(site, entry, "RECORD")
    if not os.path.exists(record):
        sys.exit(f"{entry} is half installed")
    with open(record, newline="", encoding="utf-8") as file:
        for path, _, size in csv.reader(file):
            if not size:
                continue
            try:
                found = os.stat(os.path.join(site, path)).st_size
            except OSError:
                sys.exit(f"{path} is missing")
            if found != int(size):
                sys.exit(f"{path} was changed")
for needed in ("pip", "appliance"):
    if importlib.util.find_spec(needed) is None:
        sys.exit(f"{needed} cannot be imported")
origin = importlib.util.find_spec("appliance").origin or ""
if os.path.realpath(os.path.dirname(os.path.dirname(origin))) != os.path.realpath(sys.argv[1]):
    sys.exit("it belongs to another checkout")
PYTHON
}

# What the environment was made for. It has an interpreter of its own, whatever python3 is first on PATH.
fingerprint() { sha256sum <"$ROOT/pyproject.toml" | cut -d' ' -f1; }

version_of() { "$1" -I -c 'import sys; print(sys.version)' 2>/dev/null || true; }

# Whether somebody named another interpreter than the environment has.
another_python_is_named() {
    [ -n "${ASSAY_PYTHON:-}" ] && [ -e "$VENV/.assay/made" ] && [ -x "$VENV/bin/python" ] && [ "$(version_of "$VENV/bin/python")" != "$(version_of "$PY")" ]
}

torch_wanted() {
    if [ "$WITH_CUDA" = 1 ] || has_gpu; then echo cuda; else echo cpu; fi
}

has_gpu() {
    [ -n "$(ls -A /proc/driver/nvidia/gpus 2>/dev/null || true)" ] ||
        { command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }
}

recorded() { cat "$VENV/.assay/$1" 2>/dev/null || true; }

record() {
    mkdir -p "$VENV/.assay"
    printf '%s\n' "$2" >"$VENV/.assay/$1"
}

environment_is_current() { # environment_is_current EXTRA
    [ -n "$PY" ] && [ "$(recorded fingerprint)" = "$(fingerprint)" ] || return 1
    if another_python_is_named || [ "$(recorded torch)" != "$(torch_wanted)" ]; then return 1; fi
    [ "$(recorded extra)" = dev ] || [ "$(recorded extra)" = "$1" ] || return 1
    WHY="$(environment_is_sound 2>&1)" || return 1
}

make_environment() { # an empty one; one of ours that is there waits aside until the new one works
    local free
    if [ -e "$VENV" ] && [ ! -e "$VENV/.assay/made" ] && [ -n "$(ls -A "$VENV")" ]; then
        if { [ -e "$VENV/pyvenv.cfg" ] || [ -d "$VENV/conda-meta" ]; } && [ -x "$VENV/bin/python" ] && can_make_environments "$VENV/bin/python" && "$VENV/bin/python" -I -m pip --version >/dev/null 2>&1; then
            detail "$VENV was made by someone else: it is used, and --uninstall will leave it where it is"
            return 0
        fi
        fail 5 "$VENV is there, is not ours and is no sound environment" "move it away, or choose another one with --prefix"
    fi
    mkdir -p "$VENV/.assay" || fail 5 "cannot write to $VENV" "choose another folder with --prefix"
    free="$(df -Pm "$VENV" | awk 'NR == 2 { print $4 }')"
    [ "$free" -ge "$DISK_MIB" ] ||
        fail 5 "$free MiB are free at $VENV, and $DISK_MIB are needed" "make room, or choose another disk with --prefix"
    record made "install.sh"
    put_aside
    "$PY" -I -m venv "$VENV" || fail 5 "$PY could not make a virtual environment" "read its message above"
    if [ -n "${APT_INSTALLED:-}" ]; then record packages "$APT_INSTALLED"; fi
}

pip() { "$VENV/bin/python" -I -m pip --disable-pip-version-check --no-input "$@"; }

# What `pip install ARGS` would take for torch: `cpu VERSION` or `cuda VERSION`, nothing where it finds none.
torch_offered() {
    pip install -qq --dry-run --no-deps --ignore-installed --report - "$@" 2>/dev/null | "$VENV/bin/python" -I -c '
import json, re, sys
text = sys.stdin.read()
for item in json.loads(text)["install"] if text.strip() else []:
    needs = item["metadata"].get("requires_dist", [])
    heavy = any(re.match(r"(nvidia|cuda|triton|pytorch-triton)\b", need) and "extra ==" not in need for need in needs)
    print("cuda" if heavy else "cpu", item["metadata"]["version"])'
}

install_torch() { # install_torch [REQUIREMENT]
    local want="${1:-}" offer
    [ -n "$want" ] || want="$("$VENV/bin/python" -I -c '
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    print(next(d for d in tomllib.load(file)["project"]["dependencies"] if d.startswith("torch")))' "$ROOT/pyproject.toml")"
    if [ "$(torch_wanted)" = cuda ]; then
        say "torch: the ordinary build, with CUDA (an NVIDIA GPU, or --with-cuda)"
        pip_install "$want" || fail 5 "torch could not be installed" "read pip's message above"
        return
    fi
    # The files that this machine keeps, its configured index, the vendor's CPU index: the first that has a CPU build.
    local -a places=("--no-index" "" "--index-url=$TORCH_INDEX")
    local -a names=("this machine's own files" "this machine's package index" "the vendor's index of CPU builds")
    local i
    for i in 0 1 2; do
        offer="$(torch_offered ${places[i]:+"${places[i]}"} "$want" || true)"
        case "$offer" in
        cpu\ *)
            say "torch: ${offer#cpu } from ${names[i]} (no NVIDIA GPU, so no CUDA packages)"
            pip_install --no-deps ${places[i]:+"${places[i]}"} "torch==${offer#cpu }" ||
                fail 5 "torch could not be installed" "read pip's message above"
            return
            ;;
        esac
    done
    fail 5 "no CPU build of torch was found, and the ordinary one brings several GB of CUDA packages" \
        "set ASSAY_TORCH_INDEX to an index with CPU builds, or PIP_FIND_LINKS to a folder with one, or take CUDA with --with-cuda"
}

environment() {
    local extra=base project="${INSTALL_SH_AS:-$ROOT}" # a dry run of --user speaks of the copy that there would be
    WHY=""
    if [ "$MODE" = test ]; then extra=dev; fi
    recover_environment
    if environment_is_current "$extra"; then
        say "environment: $VENV is sound and up to date"
        return 0
    fi
    # Installing the smaller set over the larger would only make the next --test slower.
    if [ "$(recorded extra)" = dev ]; then extra=dev; fi
    if [ "$extra" = dev ]; then project="${project}[dev]"; fi
    if [ "$DRY" = 1 ]; then
        plan "environment: make $VENV with ${PY:-the python3 that apt brings}${WHY:+ (damaged: $WHY)}" || true
        plan "torch: install the $(torch_wanted) build ($(has_gpu && echo 'an NVIDIA GPU was found' || echo 'no NVIDIA GPU was found'))" || true
        plan "packages: pip install --editable $project (what pyproject.toml asks for)" || true
        return 0
    fi
    if [ -n "$WHY" ]; then
        say "environment: making $VENV anew, because it is damaged: $WHY"
    elif [ -n "$(recorded fingerprint)" ] && can_be_updated; then
        say "environment: bringing $VENV up to date (pyproject.toml asks for something else, or --test for more)"
    elif [ -n "$(recorded fingerprint)" ]; then
        say "environment: making $VENV anew with $PY, because $(why_anew); the one that is there is kept until the new one works"
    else
        say "environment: $VENV with $PY (the system's own packages stay as they are)"
    fi
    if [ -n "$WHY" ] || ! can_be_updated; then make_environment; fi
    rm -f "$VENV/.assay/fingerprint"
    install_torch
    say "packages: pip install --editable $project (one to four minutes, by the network and the machine)"
    pip_install --editable "$project" || fail 5 "pip could not install Assay's dependencies" "read its message above"
    WHY="$(environment_is_sound 2>&1)" || fail 5 "the environment is not sound after its installation: $WHY" \
        "remove $VENV and run this again; if it stays so, check the disk"
    record extra "$extra"
    record torch "$(torch_wanted)"
    record fingerprint "$(fingerprint)"
    put_away
}

# Whether pip can bring it up to date in place: finished once, with an interpreter that works and that nobody asked to
# change, for the same kind of torch.
can_be_updated() {
    [ -n "$(recorded fingerprint)" ] && [ "$(recorded torch)" = "$(torch_wanted)" ] &&
        can_make_environments "$VENV/bin/python" && ! another_python_is_named
}

why_anew() {
    if another_python_is_named; then
        echo "ASSAY_PYTHON names another interpreter"
    elif [ "$(recorded torch)" != "$(torch_wanted)" ]; then
        echo "it has torch for $(recorded torch), and $(torch_wanted) is wanted"
    else
        echo "its interpreter does not work"
    fi
}

# --- 3. runsc ---------------------------------------------------------------------------------------------------------

# Starts a real sandbox as the product does and has it print a word. PROBE_ERROR says why not.
probe_runsc() { # probe_runsc BINARY STARTS
    local binary="$1" starts="$2" bundle i got
    PROBE_ERROR=""
    scratch
    bundle="$SCRATCH/bundle"
    rm -rf "$bundle"
    mkdir -p "$bundle/rootfs/usr" "$bundle/rootfs/proc" "$bundle/state"
    for i in bin lib lib64; do
        if [ -L "/$i" ]; then ln -s "usr/$i" "$bundle/rootfs/$i"; fi
    done
    cat >"$bundle/config.json" <<'JSON'
{"ociVersion": "1.0.0", "hostname": "probe",
 "process": {"user": {"uid": 65534, "gid": 65534}, "args": ["/usr/bin/printf", "inside"], "env": ["PATH=/usr/bin"],
             "cwd": "/", "noNewPrivileges": true},
 "root": {"path": "rootfs", "readonly": true},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["ro", "bind"]}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]}}
JSON
    for ((i = 1; i <= starts; i++)); do
        got="$("${ADMIN[@]}" timeout -k 2 20 "$binary" --root "$bundle/state" --network=none --platform=systrap \
            --overlay2=none --ignore-cgroups run --bundle "$bundle" "assay-probe-$$-$i" 2>"$bundle/errors" </dev/null || true)"
        if [ "$got" != inside ]; then
            "${ADMIN[@]}" "$binary" --root "$bundle/state" delete --force "assay-probe-$$-$i" >/dev/null 2>&1 || true
            PROBE_ERROR="start $i of $starts failed: $(grep -v '^[[:space:]]*$' "$bundle/errors" | tail -n 1 | tr -cd '[:print:]' | cut -c1-160)"
            "${ADMIN[@]}" rm -rf "$bundle"
            return 1
        fi
    done
    "${ADMIN[@]}" rm -rf "$bundle"
}

# Whether a Debian version of runsc may be tried at all. Rebuilds of 20240729 after revision 4 panic at start.
version_is_fit() {
    local date revision
    date="$(printf '%s' "$1" | sed -n 's/^[^~]*~\([0-9]\{8\}\).*/\1/p')"
    revision="${1##*-}"
    [ -n "$date" ] && [ "$date" -ge "$OLDEST_RUNSC" ] || return 1
    [ "$date" != 20240729 ] || [ "${revision%%+*}" -le 4 ] 2>/dev/null
}

# The Debian version of an installed binary; nothing when no package owns it.
package_version() {
    local owner
    owner="$(dpkg -S "$(readlink -f "$1")" 2>/dev/null | head -n 1 | cut -d: -f1 || true)"
    if [ -n "$owner" ]; then dpkg-query -W -f '${Version}' "$owner" 2>/dev/null || true; fi
}

keep_runsc() { # keep_runsc FILE ORIGIN
    install -m 0755 "$1" "$VENV/bin/.runsc.new"
    mv -f "$VENV/bin/.runsc.new" "$VENV/bin/runsc"
    record runsc "$2"
    say "runsc: $("$VENV/bin/runsc" --version | head -n 1), $2, in $VENV/bin; it started a sandbox"
}

runsc_from_offline() {
    if [ -z "$OFFLINE" ] || [ ! -s "$OFFLINE/runsc" ]; then
        PROBE_ERROR="there is none in the folder of --offline"
        return 1
    fi
    install -m 0755 "$OFFLINE/runsc" "$SCRATCH/runsc"
    probe_runsc "$SCRATCH/runsc" 5 && keep_runsc "$SCRATCH/runsc" "the one in $OFFLINE"
}

runsc_from_upstream() {
    local file="$SCRATCH/upstream"
    mkdir -p "$file"
    timeout 180 "$PY" -I - "$RUNSC_URL/$(uname -m)" "$file" <<'PYTHON' >"$file/log" 2>&1 || { PROBE_ERROR="$(tail -n 1 "$file/log" | cut -c1-120)"; return 1; }
import hashlib, pathlib, sys, urllib.request

base, folder = sys.argv[1], pathlib.Path(sys.argv[2])
with urllib.request.urlopen(f"{base}/runsc.sha512", timeout=6) as answer:
    wanted = answer.read(4096).decode().split()[0]
with urllib.request.urlopen(f"{base}/runsc", timeout=20) as answer:
    data = answer.read(512 << 20)
if hashlib.sha512(data).hexdigest() != wanted:
    sys.exit("the checksum of the download is not the published one")
(folder / "runsc").write_bytes(data)
PYTHON
    chmod 0755 "$file/runsc"
    probe_runsc "$file/runsc" 5 && keep_runsc "$file/runsc" "an upstream release"
}

# Fetches a package without installing it, through the machine's own sources.
runsc_from_distribution() {
    local candidate folder="$SCRATCH/distribution"
    command -v apt-cache >/dev/null 2>&1 || return 1
    candidate="$(apt-cache policy runsc 2>/dev/null | sed -n 's/^ *Candidate: *//p')"
    if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then
        PROBE_ERROR="the distribution has none"
        return 1
    fi
    version_is_fit "$candidate" || {
        PROBE_ERROR="the distribution's $candidate is too old, or a build that panics"
        return 1
    }
    mkdir -p "$folder"
    (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "runsc=$candidate") >/dev/null 2>&1 || return 1
    dpkg -x "$folder"/runsc_*.deb "$folder/root" || return 1
    probe_runsc "$folder/root/usr/bin/runsc" 5 && keep_runsc "$folder/root/usr/bin/runsc" "the distribution's $candidate"
}

os_release() { sed -n "s/^$1=\"\?\([^\"]*\)\"\?\$/\1/p" /etc/os-release; }

# The address of the Debian mirror that this machine is configured to use; nothing where there is none.
debian_mirror() {
    local codename
    [ "$(os_release ID)" = debian ] || return 0
    codename="$(os_release VERSION_CODENAME)"
    apt-get -o Debug::NoLocking=1 update --print-uris 2>/dev/null |
        sed -n "s|^'\(.*\)/dists/$codename/\(In\)\?Release'.*|\1|p" | head -n 1
}

# The measured build from the machine's own mirror, with lists and sources of its own in a temporary folder.
runsc_from_pinned() {
    local mirror folder="$SCRATCH/pinned" keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    if [ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ]; then
        PROBE_ERROR="the measured build is for amd64 only"
        return 1
    fi
    mirror="$(debian_mirror)"
    if [ -z "$mirror" ] || [ ! -s "$keyring" ]; then
        PROBE_ERROR="no Debian mirror is configured on this machine"
        return 1
    fi
    mkdir -p "$folder/sources" "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/root"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: amd64\nSigned-By: %s\n' \
        "$mirror" "$PINNED_SUITE" "$keyring" >"$folder/sources/pinned.sources"
    local -a apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$folder/sources"
        -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=root
        -o APT::Update::Post-Invoke-Success::= -o Acquire::Languages=none -o Acquire::http::Timeout=20)
    if ! "${apt[@]}" update >"$folder/log" 2>&1 ||
        ! (cd "$folder" && "${apt[@]}" download "runsc=$PINNED_RUNSC") >>"$folder/log" 2>&1; then
        PROBE_ERROR="apt: $(grep -E '^[EW]:' "$folder/log" | tail -n 1 | cut -c1-160)"
        return 1
    fi
    echo "$PINNED_SHA256  $(echo "$folder"/runsc_*.deb)" | sha256sum --check --status || {
        PROBE_ERROR="the package from the mirror is not the measured one (sha256)"
        return 1
    }
    dpkg -x "$folder"/runsc_*.deb "$folder/root"
    probe_runsc "$folder/root/usr/bin/runsc" 5 &&
        keep_runsc "$folder/root/usr/bin/runsc" "Debian's $PINNED_RUNSC, the measured build"
}

runsc() {
    local place version source
    for place in "$VENV/bin/runsc" "$(command -v runsc 2>/dev/null || true)"; do
        [ -n "$place" ] && [ -x "$place" ] || continue
        if [ "$DRY" = 1 ]; then
            plan "runsc: start a sandbox with $place to see that it works; fetch another one only if it does not" || true
            return 0
        fi
        version="$(package_version "$place")"
        if [ -n "$version" ] && ! version_is_fit "$version"; then
            PROBE_ERROR="Debian's $version is too old, or a build that panics"
        elif probe_runsc "$place" 2; then
            say "runsc: $place works ($("$place" --version | head -n 1)); it started a sandbox"
            return 0
        fi
        detail "$place does not do: $PROBE_ERROR"
    done
    plan "runsc: fetching one into $VENV/bin (no model code runs outside gVisor): an upstream release, the distribution's, or Debian's $PINNED_RUNSC" ||
        return 0
    scratch
    local -a sources=(upstream distribution pinned)
    if [ -n "$OFFLINE" ]; then sources=(offline); fi
    for source in "${sources[@]}"; do
        PROBE_ERROR="it could not be fetched"
        if "runsc_from_$source"; then return 0; fi
        detail "$source: $PROBE_ERROR"
    done
    fail 5 "no runsc that can start a sandbox here was found" \
        "download a release from gvisor.dev, put it on PATH and run this again; inside a container, allow ptrace, mount and namespaces"
}

# --- 4. what code in sandboxes may import -----------------------------------------------------------------------------

# The distribution's interpreter runs in sandboxes, so the packages are for that one.
readonly GUEST_PYTHON=/usr/bin/python3
readonly GUEST_LIST="$ROOT/runtime/backends/guest_packages.txt"

guest_packages() {
    local folder="$VENV/guest-packages" new version digest started
    if [ "$GUEST_PACKAGES" = 0 ]; then
        say "guest packages: none (--without-guest-packages)"
        if [ -d "$folder" ] && plan "remove $folder"; then rm -rf "$folder"; fi
        return 0
    fi
    if [ ! -x "$GUEST_PYTHON" ]; then # in a dry run on a bare machine
        plan "guest packages: build numpy, scipy and sympy for $GUEST_PYTHON in $folder" || return 0
    fi
    version="$("$GUEST_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    digest="$({ grep -v '^#' "$GUEST_LIST"; "$GUEST_PYTHON" -VV; } | sha256sum | cut -d' ' -f1)"
    if [ "$(cat "$folder/digest" 2>/dev/null || true)" = "$digest" ]; then
        say "guest packages: $folder is up to date"
        return 0
    fi
    plan "guest packages: $(grep -v '^#' "$GUEST_LIST" | tr '\n' ' ')for Python $version, in $folder (code in sandboxes may import them)" ||
        return 0
    scratch
    started="$(date +%s)"
    new="$VENV/.guest-packages.new"
    rm -rf "$new"
    pip_install --no-deps --no-compile --only-binary=:all: --implementation cp --python-version "$version" \
        --target "$new" -r "$GUEST_LIST" 2>"$SCRATCH/guest.log" || {
        tail -n 3 "$SCRATCH/guest.log" >&2
        rm -rf "$new"
        fail 5 "the packages for code in sandboxes could not be fetched" \
            "read pip's message above; --without-guest-packages goes on without them"
    }
    # Tests, headers and programs are of no use in there.
    find "$new" -depth -type d \( -name tests -o -name testing -path '*/scipy/*' -o -name include -o -name bin -o -name '*.dist-info' \) \
        -exec rm -rf {} +
    rm -rf "$new/share" "$new/isympy.py"
    find "$new" -type f \( -name '*.pth' -o -name '*.pyi' -o -name '*.a' -o -name '*.pxd' \) -delete
    "$GUEST_PYTHON" -I -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$new" -p /opt/packages "$new" \
        >/dev/null || true # some files are Python 2 on purpose
    find "$new" -type d -exec chmod 0755 {} +
    find "$new" -type f -exec chmod 0644 {} +
    "$GUEST_PYTHON" -I -c 'import sys; sys.path.append(sys.argv[1]); import numpy, scipy.integrate, sympy' "$new" ||
        fail 5 "$GUEST_PYTHON cannot import the packages that were fetched for it" "read its message above"
    printf '%s\n' "$digest" >"$new/digest"
    rm -rf "$folder"
    mv "$new" "$folder"
    detail "$(du -sm "$folder" | cut -f1) MiB, $(($(date +%s) - started)) s"
}

# --- 5. vLLM's environment --------------------------------------------------------------------------------------------

readonly VLLM_PINS="$ROOT/appliance/inference/vllm/pins.txt"

vllm_pins() { sed -n "s/^$1 //p" "$VLLM_PINS"; }

# Its pins are not ours, so it lies beside the product's environment, and the product talks to a process in it.
vllm_environment() {
    local kind=cpu digest started interpreter="$PY"
    if [ "$WITH_VLLM" = no ]; then return 0; fi
    if [ -z "$WITH_VLLM" ] && [ ! -e "$VENV-vllm" ]; then return 0; fi
    if [ "$(torch_wanted)" = cuda ]; then kind=gpu; fi
    if [ -e "$VENV-vllm" ] && [ ! -e "$VENV-vllm/.assay/made" ]; then
        say "vllm: $VENV-vllm was made by someone else: it is used as it is"
        return 0
    fi
    if [ -x "$VENV-vllm/bin/python" ] && [ -z "${ASSAY_PYTHON:-}" ]; then interpreter="$VENV-vllm/bin/python"; fi
    digest="$({ vllm_pins "$kind" && "$interpreter" -I -c 'import sys; print(sys.version)'; } | sha256sum | cut -d' ' -f1)"
    if [ "$(cat "$VENV-vllm/.assay/finished" 2>/dev/null || true)" = "$digest" ]; then
        say "vllm: $VENV-vllm is up to date"
        return 0
    fi
    plan "vllm: build $VENV-vllm with $(vllm_pins "$kind" | tr '\n' ' ')(an environment of its own; about 2.5 GB)" || return 0
    digest="$({ vllm_pins "$kind" && "$PY" -I -c 'import sys; print(sys.version)'; } | sha256sum | cut -d' ' -f1)"
    started="$(date +%s)"
    if (build_vllm "$kind") && printf '%s\n' "$digest" >"$VENV-vllm/.assay/finished"; then
        detail "$(du -sm "$VENV-vllm" | cut -f1) MiB, $(($(date +%s) - started)) s"
        return 0
    fi
    rm -rf "$VENV-vllm"
    [ "$WITH_VLLM" != yes ] || fail 5 "vLLM's environment could not be built" "read the message above; the product works without it"
    say "vllm: its environment could not be built (see above); there is none now: ./install.sh --with vllm"
}

build_vllm() { # build_vllm KIND, in a shell of its own: VENV names another environment in it
    local free pin
    free="$(df -Pm "$(dirname "$VENV")" | awk 'NR == 2 { print $4 }')"
    if [ "$free" -lt "$VLLM_DISK_MIB" ]; then
        detail "$free MiB are free at $VENV, and $VLLM_DISK_MIB are needed for vLLM"
        return 1
    fi
    VENV="$VENV-vllm"
    rm -rf "$VENV"
    mkdir -p "$VENV/.assay" && record made "install.sh" && "$PY" -I -m venv "$VENV" || return 1
    while read -r pin; do
        case "$pin" in
        torch==*) install_torch "$pin" || return 1 ;;
        *) pip_install "$pin" || return 1 ;;
        esac
    done < <(vllm_pins "$1")
    if [ "$1" = cpu ]; then
        # Builds for another torch, which it then cannot be imported with; and a compiler for GPUs of 1 GB.
        pip uninstall -qq --yes torchvision torchaudio torchcodec triton || return 1
    fi
    "$VENV/bin/python" -I -c 'import vllm' >/dev/null 2>"$VENV/.assay/errors" || {
        tail -n 3 "$VENV/.assay/errors" >&2
        return 1
    }
}

# --- uninstall --------------------------------------------------------------------------------------------------------

# The ids of processes whose program is the interpreter of the environment.
running_here() {
    local file program
    [ -e "$VENV/.assay/made" ] || return 0
    for file in /proc/[0-9]*/cmdline; do
        { IFS= read -r -d '' program <"$file"; } 2>/dev/null || continue
        case "$program" in "$VENV/bin/python"*) basename "$(dirname "$file")" ;; esac
    done
}

uninstall() {
    local data head place packages
    # The product itself says where its data is, and what it keeps beside it, from its own configuration.
    data="$("$VENV/bin/python" -I -c 'from appliance.config.configuration import Settings; print(Settings.load().data)' 2>/dev/null || true)"
    head="$("$VENV/bin/python" -I -c 'from appliance.config.configuration import Settings
from appliance.audit.kept_heads import head_files
settings = Settings.load()
for place in head_files(settings, settings.data):
    if place != settings.audit.witness: print(place)' 2>/dev/null || true)"
    if [ "$PURGE" = 1 ] && [ -n "$data" ] && [ -z "$head" ]; then
        fail 5 "where the head of the audit log is kept is not known, because this installation cannot say it" \
            "remove it by hand (docs/keys.md says where it is), and run --uninstall without --purge"
    fi
    if [ "$PURGE" = 1 ] && [ -z "$data" ]; then
        fail 5 "the data folder is not known, because this installation cannot say it" \
            "remove it by hand, and run --uninstall without --purge"
    fi
    if [ -n "$data" ]; then data="$(realpath -m -- "$data")"; fi # a link would go, and what it leads to stay
    for place in $(running_here); do
        [ "$DRY" = 1 ] || fail 5 "process $place runs from $VENV" "stop it first: $VENV/bin/assay stop, or systemctl stop assay assay-broker"
        plan "refuse while process $place runs from $VENV; stop it first. Then:" || true
    done
    if [ -e "$data/run/lock" ] && ! flock -n "$data/run/lock" true; then
        [ "$DRY" = 1 ] || fail 5 "a daemon works on $data" "stop it first: $VENV/bin/assay stop"
        plan "refuse while a daemon works on $data; stop it first: $VENV/bin/assay stop. Then:" || true
    fi
    if [ "$PURGE" = 1 ]; then
        for place in "${HOME:-/root}" "$ROOT" "$PWD" /usr /etc /var/lib; do
            case "$(realpath -m -- "$place")/" in
            "${data%/}"/*) fail 5 "$data is not a folder to remove: $place is in it" "remove the data by hand" ;;
            esac
        done
        if [ -n "$(ls -A "$data" 2>/dev/null)" ] && [ ! -e "$data/ledger.sqlite3" ] && [ ! -d "$data/run" ]; then
            fail 5 "$data is no data folder: it holds something else" "remove the data by hand"
        fi
    fi
    packages="$(recorded packages)"
    if [ ! -e "$VENV" ]; then
        say "there is no environment at $VENV"
    elif [ -e "$VENV/.assay/made" ]; then
        if plan "remove $VENV (the environment, with the runsc that was fetched)"; then rm -rf "$VENV"; fi
    elif plan "leave $VENV where it is, because this script did not make it; remove its own records and runsc"; then
        if [ -n "$(recorded runsc)" ]; then rm -f "$VENV/bin/runsc"; fi
        rm -rf "$VENV/.assay"
    fi
    if [ -e "$VENV-vllm/.assay/made" ] && plan "remove $VENV-vllm (vLLM's environment)"; then rm -rf "$VENV-vllm"; fi
    if [ -e "$VENV-lean/.assay/made" ] && plan "remove $VENV-lean (Lean)"; then rm -rf "$VENV-lean"; fi
    if [ -e "$VENV-kernel/.assay/made" ] && plan "remove $VENV-kernel (a second kernel)"; then rm -rf "$VENV-kernel"; fi
    if [ -e "$VENV-smollm2/.assay/made" ] && plan "remove $VENV-smollm2 (a model)"; then rm -rf "$VENV-smollm2"; fi
    for place in "$VENV-lean.new" "$VENV-lean.old" "$VENV-kernel.new" "$VENV-smollm2.new"; do # what a kill left
        if [ -d "$place" ] && plan "remove $place (it was not finished)"; then rm -rf "$place"; fi
    done
    if [ -d "$ROOT/assay.egg-info" ] && plan "remove $ROOT/assay.egg-info (pip wrote it)"; then
        rm -rf "$ROOT/assay.egg-info"
    fi
    if [ "$PURGE" = 1 ]; then
        if [ ! -d "$data" ]; then
            say "there is no data in $data; where ASSAY_DATA names another folder, as the units do, set it and run this again"
        elif plan "remove your data in $data (--purge)"; then
            # A file system of its own loses what is in it, and its folder stays.
            if mountpoint -q "$data"; then find "$data" -mindepth 1 -delete; else rm -rf "$data"; fi
            # The head of its audit log: it would refuse a new data folder in the place of this one.
            while IFS= read -r place; do
                if [ -f "$place" ]; then rm -f "$place"; fi
            done <<<"$head"
        fi
    else
        say "your data stays where it is (--purge removes it)"
    fi
    if [ -n "$packages" ]; then say "these system packages stay, others may use them by now: $packages"; fi
}

# --- what comes after -------------------------------------------------------------------------------------------------

reference_pages() {
    if ! plan "assay docs build: reference pages in $VENV/share/doc/assay"; then return 0; fi
    "$VENV/bin/assay" docs build --out "$VENV/share/doc/assay" >&2 || detail "left out: the program works without them"
}

doctor() {
    if ! plan "assay doctor: what this machine can do"; then return 0; fi
    if [ ${#ADMIN[@]} -gt 0 ]; then detail "through sudo, like everything that starts sandboxes: they need root"; fi
    "${ADMIN[@]}" "$VENV/bin/assay" doctor
}

# Style and types; one line says what failed.
static_checks() {
    local failed=()
    "$VENV/bin/ruff" check || failed+=("ruff check")
    "$VENV/bin/ruff" format --check --quiet || failed+=("ruff format")
    "$VENV/bin/mypy" || failed+=("mypy")
    "$VENV/bin/lint-imports" --no-logo || failed+=("lint-imports")
    [ ${#failed[@]} = 0 ] || {
        say "failed: $(IFS=,; echo "${failed[*]}")"
        return 1
    }
}

# Packages that some tests' sandboxes have; without them these tests are skipped, and say so.
test_adapters() {
    local name
    for name in mcp mcp_servers openenv reasoning_gym; do # 39, 198, 94, 197 MiB; verifiers takes 327, and is left out
        if ! plan "assay curriculum adapter install $name: packages for sandboxes, which some tests need"; then continue; fi
        "$VENV/bin/assay" curriculum adapter install "$name" ||
            detail "the tests that need $name are skipped; read the message above"
    done
}

run_tests() {
    local red=0 workers
    AFTER=1
    # Twice as many as there are cores: a test waits for processes of its own for a good part of its time.
    workers="$(($(nproc) * 2))"
    test_adapters
    smollm2_model || detail "the tests that need this model are skipped; read the message above"
    if ! plan "ruff, mypy, lint-imports, and beside them pytest on $workers processes"; then return 0; fi
    cd "$ROOT"
    # Tests start hundreds of processes; without kept bytecode each would compile the product anew.
    unset PYTHONDONTWRITEBYTECODE
    scratch
    static_checks >"$SCRATCH/checks" 2>&1 &
    CHECKS=$!
    # Each process has neighbouring tests, which share what they start, until it helps another one out.
    "${ADMIN[@]}" "$VENV/bin/pytest" -q -n "$workers" --dist worksteal ${EXTRA[@]+"${EXTRA[@]}"} |
        tee "$SCRATCH/tests" || red=1
    wait "$CHECKS" || red=1
    CHECKS=""
    cat "$SCRATCH/checks"
    tail -n 1 "$SCRATCH/tests" # the last line of all is pytest's count
    [ "$red" = 0 ] || exit 1
}

main() {
    # shellcheck source=/dev/null
    . "$ROOT/install/lean.sh"
    # shellcheck source=/dev/null
    . "$ROOT/install/replacing.sh"
    # shellcheck source=/dev/null
    . "$ROOT/install/smollm2.sh"
    # shellcheck source=/dev/null
    . "$ROOT/install/wheels.sh"
    parse "$@"
    trap clean_up EXIT
    trap 'stopped 130' INT
    trap 'stopped 143' TERM
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
    if [ -n "$SCOPE" ]; then
        # shellcheck source=/dev/null
        . "$ROOT/install/releases.sh"
        case "$MODE" in
        rollback) rollback_release ;;
        uninstall) uninstall_releases ;;
        *)
            use_offline
            install_release
            ;;
        esac
        return 0
    fi
    exec 9<"$ROOT"
    if command -v flock >/dev/null 2>&1 && ! flock -n 9; then
        fail 5 "another install.sh works on this checkout" "wait until it is done"
    fi
    if [ "$MODE" = uninstall ]; then
        uninstall
        return 0
    fi
    if ! find_rights && [ "$DRY" = 0 ]; then
        fail 5 "starting sandboxes needs root, and there is no sudo" \
            "as root: apt-get install sudo, and let $(id -un) use it; or run this as root, ./install.sh --system for all"
    fi
    use_offline
    system_packages
    if [ "$MODE" = test ]; then browser; fi
    environment
    runsc
    guest_packages
    vllm_environment
    lean_toolchain
    lean_kernel
    if [ -n "$WITH_SMOLLM2" ]; then smollm2_model || fail 5 "the model smollm2 could not be fetched" "read pip's message above"; fi
    reference_pages
    exec 9<&- # the installation is done: what follows may take long, and needs no lock
    doctor
    case "$MODE" in
    demo)
        if plan "assay demo ${EXTRA[*]-}: the product's main job, from end to end"; then
            AFTER=1
            "${ADMIN[@]}" "$VENV/bin/assay" demo ${EXTRA[@]+"${EXTRA[@]}"}
        fi
        ;;
    test) run_tests ;;
    wheels) fill_wheels ;;
    *) if [ "$DRY" = 0 ]; then say "done. Next: $VENV/bin/assay demo"; fi ;;
    esac
}

main "$@"
