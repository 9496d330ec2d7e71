# shellcheck shell=bash
# Keeps a Lean 4 beside the environment (--with lean=PLACE): in VENV-lean, where the product looks before it looks for elan's.
# A second kernel (--with kernel=PROGRAM) lies in VENV-kernel.
#
# PLACE is a toolchain's folder (lib/lean and bin/lean in it), an archive of one (.tar.zst, .tar.xz, .tar.gz), or the
# address of such an archive. What always holds: an archive is used only when its SHA-256 is the one that was given
# (PLACE#sha256=HEX, or the file ARCHIVE.sha256 beside it); a Lean counts when it has compiled a theorem here, and the one
# before it stays until then. Sourced by install.sh, whose functions and variables it uses.

readonly LEAN_DISK_MIB=6000 # an official release: 2500 unpacked, and as much while it is exchanged

# Makes PLACE absolute; refuses what cannot be one, before anything is done.
lean_place() { # lean_place PLACE
    local place="${1%%#*}" rest=""
    case "$1" in *"#"*) rest="${1#*#}" ;; esac
    case "$rest" in
    "") ;;
    sha256=*)
        [[ "${rest#sha256=}" =~ ^[0-9a-f]{64}$ ]] || fail 2 "#$rest is no SHA-256" "64 small hexadecimal digits, as sha256sum prints them"
        ;;
    *) fail 2 "#$rest is not understood" "./install.sh --with 'lean=ARCHIVE#sha256=HEX'" ;;
    esac
    case "$place" in
    "") fail 2 "--with lean= needs a folder, an archive or an address" "./install.sh --with 'lean=lean-4.35.0-linux.tar.zst#sha256=HEX'" ;;
    http://* | https://*)
        [ -n "$rest" ] || fail 2 "what is fetched from $place cannot be known without its SHA-256" \
            "take the digest from where the release is announced: --with 'lean=$place#sha256=HEX'"
        [ -z "$OFFLINE" ] || fail 2 "--offline fetches nothing" "name an archive or a folder on this machine"
        ;;
    *)
        [ -e "$place" ] || fail 2 "there is no $place" "name a toolchain's folder, an archive of one, or an address"
        place="$(realpath -- "$place")"
        ;;
    esac
    WITH_LEAN="$place${rest:+#$rest}"
    if [ -f "$place" ] && [ -z "$(lean_sum)" ]; then
        fail 2 "$place has no SHA-256 to hold it against" \
            "it has $(sha256sum <"$place" | cut -d' ' -f1); if its publisher says the same, put #sha256= and that behind it"
    fi
}

# The address or file of WITH_LEAN, and the SHA-256 that it must have; empty where it is a folder or nobody said.
lean_from() { printf '%s\n' "${WITH_LEAN%%#*}"; }

lean_sum() {
    local place
    place="$(lean_from)"
    case "$WITH_LEAN" in
    *"#sha256="*) printf '%s\n' "${WITH_LEAN##*#sha256=}" ;;
    *) if [ -f "$place.sha256" ]; then sed -n '1s/^\([0-9a-f]\{64\}\)\([ *].*\)\?$/\1/p' "$place.sha256"; fi ;;
    esac
}

lean_needs_zstd() {
    case "${WITH_LEAN%%#*}" in *.zst) ! command -v zstd >/dev/null 2>&1 ;; *) return 1 ;; esac
}

lean_toolchain() {
    local place sum started wanted
    # What a kill between the two renames below left.
    if [ -e "$VENV-lean.old" ] && [ ! -e "$VENV-lean" ] && [ "$DRY" = 0 ]; then mv "$VENV-lean.old" "$VENV-lean"; fi
    if [ -z "$WITH_LEAN" ]; then
        if [ -e "$VENV-lean/.assay/made" ]; then say "lean: $(cat "$VENV-lean/.assay/version" 2>/dev/null), in $VENV-lean"; fi
        return 0
    fi
    place="$(lean_from)"
    sum="$(lean_sum)"
    if [ -e "$VENV-lean" ] && [ ! -e "$VENV-lean/.assay/made" ]; then
        fail 5 "$VENV-lean is there and was made by someone else" "move it away"
    fi
    wanted="$place ${sum:-$(stat -c %Y "$place" 2>/dev/null || true)}"
    if [ "$(cat "$VENV-lean/.assay/from" 2>/dev/null || true)" = "$wanted" ]; then
        say "lean: $(cat "$VENV-lean/.assay/version"), in $VENV-lean, is what $place has"
        return 0
    fi
    plan "lean: put the toolchain from $place into $VENV-lean${sum:+ (sha256 $sum)}" || return 0
    scratch
    started="$(date +%s)"
    rm -rf "$VENV-lean.new"
    mkdir "$VENV-lean.new"
    if ! (unpack_lean "$place" "$sum" "$VENV-lean.new" && try_lean "$VENV-lean.new"); then
        rm -rf "$VENV-lean.new"
        fail 5 "no Lean was taken from $place" "read the message above; what was there before still is"
    fi
    mkdir "$VENV-lean.new/.assay"
    printf '%s\n' "$wanted" >"$VENV-lean.new/.assay/from"
    "$VENV-lean.new/bin/lean" --version | head -n 1 >"$VENV-lean.new/.assay/version"
    : >"$VENV-lean.new/.assay/made"
    rm -rf "$VENV-lean.old"
    if [ -e "$VENV-lean" ]; then mv "$VENV-lean" "$VENV-lean.old"; fi
    mv "$VENV-lean.new" "$VENV-lean"
    rm -rf "$VENV-lean.old"
    detail "$(cat "$VENV-lean/.assay/version"); it compiled a theorem; $(du -sm "$VENV-lean" | cut -f1) MiB, $(($(date +%s) - started)) s"
}

# Makes WITH_KERNEL absolute; refuses what is no program, before anything is done.
kernel_place() {
    if [ ! -f "$WITH_KERNEL" ] || [ ! -x "$WITH_KERNEL" ]; then
        fail 2 "$WITH_KERNEL is no program" "build a checker of Lean's exports, such as nanoda, and name its executable file"
    fi
    WITH_KERNEL="$(realpath -- "$WITH_KERNEL")"
}

# Copies a second kernel (--with kernel=PROGRAM) to VENV-kernel. The verifier tries it on a true and a false proof.
lean_kernel() {
    local own="$VENV-kernel" name
    if [ -z "$WITH_KERNEL" ]; then return 0; fi
    if [ -e "$own" ] && [ ! -e "$own/.assay/made" ]; then
        fail 5 "$own is there and was made by someone else" "move it away"
    fi
    plan "lean: put the second kernel $WITH_KERNEL into $own" || return 0
    name="$(basename -- "$WITH_KERNEL")"
    rm -rf "$own.new"
    mkdir -p "$own.new/.assay"
    cp -L -- "$WITH_KERNEL" "$own.new/$name"
    chmod 755 "$own.new" "$own.new/$name" # boxes see it as another user
    : >"$own.new/.assay/made"
    rm -rf "$own"
    mv "$own.new" "$own"
    detail "$name, sha256 $(sha256sum <"$own/$name" | cut -d' ' -f1)"
}

unpack_lean() { # unpack_lean PLACE SUM FOLDER
    local file="$1" free top
    free="$(df -Pm "$3" | awk 'NR == 2 { print $4 }')"
    if [ -d "$1" ]; then
        if [ "$free" -lt "$(($(du -smL "$1" | cut -f1) + 500))" ]; then
            detail "$free MiB are free at $3, which is too little for a copy of $1"
            return 1
        fi
        # The links are followed: what they lead to may be in a home folder, which no service sees. Owner: who installs.
        cp -RL --preserve=mode,timestamps "$1/." "$3/" || return 1
    else
        if [ "$free" -lt "$LEAN_DISK_MIB" ]; then
            detail "$free MiB are free at $3, and $LEAN_DISK_MIB are needed"
            return 1
        fi
        case "$1" in
        http://* | https://*)
            file="$3/.archive"
            say "lean: fetching $1"
            "$PY" -I -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as file: shutil.copyfileobj(answer, file)' \
                "$1" "$file" 2>"$SCRATCH/fetch.log" || {
                detail "$(tail -n 1 "$SCRATCH/fetch.log" | cut -c1-200)"
                return 1
            }
            ;;
        esac
        if [ "$(sha256sum <"$file" | cut -d' ' -f1)" != "$2" ]; then
            detail "its SHA-256 is $(sha256sum <"$file" | cut -d' ' -f1), and not $2"
            return 1
        fi
        case "$1" in
        *.zst) tar --zstd --no-same-owner -C "$3" -xf "$file" || return 1 ;;
        *) tar --no-same-owner -C "$3" -xf "$file" || return 1 ;;
        esac
        if [ "$file" = "$3/.archive" ]; then rm -f "$file"; fi
        # An archive has one folder at its top, as releases do, or the toolchain itself.
        top="$(find "$3" -mindepth 1 -maxdepth 1)"
        if [ -d "$top" ] && [ ! -d "$3/lib/lean" ]; then
            mv "$top" "$3/.top"
            find "$3/.top" -mindepth 1 -maxdepth 1 -exec mv -t "$3" {} + && rmdir "$3/.top" || return 1
        fi
    fi
    chmod -R u+rwX,go+rX,go-w "$3"
}

# Whether the product would take it for one, and whether it does what it is for.
try_lean() { # try_lean FOLDER
    local needed said
    for needed in lib/lean/Init.olean lib/lean/libleanshared.so bin/lean; do
        if [ ! -e "$1/$needed" ]; then
            detail "it has no $needed: this is no toolchain of Lean 4 for Linux"
            return 1
        fi
    done
    printf 'theorem assay_probe (p : Prop) (h : p) : p := h\n' >"$1/.probe.lean"
    said="$(cd "$1" && env -i PATH=/usr/bin:/bin HOME="$1" timeout -k 5 120 bin/lean .probe.lean 2>&1 </dev/null)" || {
        detail "its Lean could not compile a theorem: $(printf '%s' "$said" | tail -n 1 | tr -cd '[:print:]' | cut -c1-160)"
        return 1
    }
    rm -f "$1/.probe.lean"
}
