#!/usr/bin/env bash
# Builds a llama.cpp for engine_current.go: engine_current.sh SOURCE CACHE
#
# SOURCE is a folder with llama.cpp, or "pip" for the tree that the Python
# package llama-cpp-python carries. What is fetched and built is kept below
# CACHE. From the environment: CPU_FLAGS, NATIVE and OPENMP (ON or OFF), PYTHON.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$1 cache=$2
fail() { echo "engine_current.sh: $*" >&2; exit 1; }
for tool in cmake sha256sum tar; do command -v $tool >/dev/null || fail "$tool is needed"; done

commit=
if [ "$source" = pip ]; then
	fetched=$(bash "$here/fetch_llama_cpp.sh" "$cache")
	source=${fetched% *} commit=${fetched##* }
fi
source=$(cd "$source" && pwd) || fail "no folder $1"
[ -f "$source/src/llama-context.h" ] || fail "$source holds no llama.cpp"
# The tree may lie in the repository of something else.
if [ -z "$commit" ] && [ "$(git -C "$source" rev-parse --show-toplevel 2>/dev/null)" = "$source" ]; then
	commit=$(git -C "$source" describe --tags --always --dirty)
fi

# A build a tree, compiler and CPU: each is made again only where it changed.
key=$(echo "$source ${CPU_FLAGS:-} ${NATIVE:-} ${OPENMP:-} $(cc --version)" | sha256sum | cut -c1-12)
build=$cache/build-$key
mkdir -p "$build"
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
cmake -S "$source" -B "$build" "${generator[@]}" --log-level=ERROR -Wno-dev \
	-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DCMAKE_ARCHIVE_OUTPUT_DIRECTORY="$build/lib" \
	-DGGML_NATIVE="${NATIVE:-ON}" -DGGML_OPENMP="${OPENMP:-ON}" \
	-DCMAKE_C_FLAGS="${CPU_FLAGS:-}" -DCMAKE_CXX_FLAGS="${CPU_FLAGS:-} -include $here/tile_config.h" \
	-DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
	-DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF >"$build/log" 2>&1 || { tail -n 40 "$build/log" >&2; exit 1; }
[ -f "$build/lib/libllama.a" ] || echo "compiling $source: some minutes, once" >&2
cmake --build "$build" --target llama --parallel "$(nproc)" >"$build/log" || { tail -n 40 "$build/log" >&2; exit 1; }

rm -rf "$here/current"
mkdir "$here/current"
ln -s "$source" "$here/current/llama.cpp"
ln -s "$build/lib" "$here/current/lib"
# Go does not look into libraries: it is by this file that it sees another one.
sum=$(cat "$build"/lib/*.a | sha256sum | cut -c1-64)
printf '//go:build llamacpp\n\n// Libraries: %s\n#define QUERN_ENGINE_COMMIT "%s"\n' "$sum" "${commit:-unknown}" >"$here/engine_build.h"
