#!/usr/bin/env bash
# Builds llama-server of the pinned llama.cpp for this CPU, unless it is there,
# and prints its path: llama_server.sh CACHE
# Takes about ten minutes of two cores. From the environment: PYTHON.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cgo=$here/../../cgo
command -v cmake >/dev/null || { echo "llama_server.sh: cmake is needed" >&2; exit 1; }
fetched=$(bash "$cgo/fetch_llama_cpp.sh" "$1")
source=${fetched% *} commit=${fetched##* }
build=$(cd "$1" && pwd)/server-$(cc -march=native -Q --help=target 2>/dev/null | sha256sum | cut -c1-12)
if [ ! -x "$build/bin/llama-server" ]; then
	echo "compiling llama-server: about ten minutes, once" >&2
	generator=()
	command -v ninja >/dev/null && generator=(-G Ninja)
	# The tile cure: what GCC 12 makes of ggml's AMX dies of SIGILL without it.
	cmake -S "$source" -B "$build" "${generator[@]}" --log-level=ERROR -Wno-dev \
		-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON \
		-DCMAKE_CXX_FLAGS="-include $cgo/tile_config.h" -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
		-DLLAMA_BUILD_COMMIT="$commit" >/dev/null
	cmake --build "$build" --target llama-server --parallel "$(nproc)" >"$build/log" || { tail -n 40 "$build/log" >&2; exit 1; }
fi
echo "$build/bin/llama-server"
