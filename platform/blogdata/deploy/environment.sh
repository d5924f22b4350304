#!/bin/sh
# Makes .venv from uv.lock, of this project or of another one in a folder of it. Needs Python >= 3.10 and a package
# registry, nothing else; touches the network only when pyproject.toml, uv.lock or the interpreter changed since the
# last success.
# Usage: environment.sh [--project FOLDER] [EXTRA_GROUP...]
set -eu
cd "$(dirname "$0")/../../.."
UV_VERSION=0.13.8

say() { printf '%s\n' "$*" >&2; }

supported() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; }

find_python() {
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10 python; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if supported "$path"; then
            "$path" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

python=$(find_python) || {
    say "No Python 3.10, 3.11, 3.12 or 3.13 was found."
    say "  where: PATH=$PATH"
    say "  next:  install one of them, or name it: make run PYTHON=/path/to/python3"
    exit 1
}

project=.
if [ "${1:-}" = --project ]; then
    project=$2
    shift 2
fi
venv=${project#./}/.venv
venv=${venv#./}
groups=""
stamp=$venv/.ready
for group in "$@"; do
    groups="$groups --group $group"
    stamp="$stamp-$group"
done
state=$("$python" - "$project/pyproject.toml" "$project/uv.lock" <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256(repr(sys.version_info[:2]).encode())
for name in sys.argv[1:]:
    digest.update(pathlib.Path(name).read_bytes())
print(digest.hexdigest())
PY
)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then
    exit 0
fi

own_uv() {
    if [ -x .uv/bin/uv ] && .uv/bin/uv --version >/dev/null 2>&1; then
        echo .uv/bin/uv
        return 0
    fi
    rm -rf .uv
    if "$python" -m venv .uv >/dev/null 2>&1 &&
        .uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" >&2; then
        echo .uv/bin/uv
        return 0
    fi
    rm -rf .uv
    # A Python without ensurepip (as some distributions ship it) can still have pip itself.
    if "$python" -m pip install --quiet --disable-pip-version-check --target .uv "uv==$UV_VERSION" >&2; then
        echo .uv/bin/uv
        return 0
    fi
    rm -rf .uv
    return 1
}

sync() {
    # An edit of pyproject.toml mostly changes nothing that is installed: then the network is not needed.
    # shellcheck disable=SC2086
    if [ -x "$venv/bin/python" ] && UV_PYTHON_DOWNLOADS=never "$1" sync --quiet --offline --locked --inexact \
        --project "$project" --python "$python" $groups 2>/dev/null; then
        return 0
    fi
    # shellcheck disable=SC2086
    UV_PYTHON_DOWNLOADS=never "$1" sync --quiet --locked --inexact --project "$project" --python "$python" $groups
}

done_with() {
    printf '%s\n' "$state" >"$stamp"
    exit 0
}

say "Setting up $venv from uv.lock ..."
if [ "${BLOGDATA_UV:-}" != own ] && uv --version >/dev/null 2>&1; then
    if sync uv; then done_with; fi
    if [ "$(uv --version | cut -d' ' -f2)" = "$UV_VERSION" ]; then
        say "uv could not set up $venv."
        say "  where: $(pwd)/$venv"
        say "  next:  read uv's message above; is the package registry reachable?"
        exit 1
    fi
    say "The uv on the PATH failed; trying uv $UV_VERSION in .uv/."
fi
uv=$(own_uv) || {
    say "uv $UV_VERSION could not be installed: neither 'python -m venv' with pip nor 'pip install --target' worked."
    say "  where: $python"
    say "  next:  install pip for this Python (Debian: python3-venv), or put uv on the PATH"
    exit 1
}
sync "$uv" || {
    say "uv could not set up $venv."
    say "  where: $(pwd)/$venv"
    say "  next:  read uv's message above; is the package registry reachable?"
    exit 1
}
done_with
