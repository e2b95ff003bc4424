"""Downloads the sources that sources.txt names, by version and digest, into a folder.

    download.py FOLDER

pip would build each of them first, to know what it is called: that takes longer than all tests.
"""

from __future__ import annotations

import hashlib
import html
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path

INDEX = "https://pypi.org/simple/"
_LINE = re.compile(r"(?P<name>[\w-]+)==(?P<version>\S+) --hash=sha256:(?P<digest>[0-9a-f]{64})")
_PATIENCE = 120


def read(url: str) -> bytes:
    """What is there."""
    with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
        data: bytes = answer.read()
    return data


def main(folder: Path) -> None:
    sources = Path(__file__).with_name("sources.txt").read_text()
    for wanted in _LINE.finditer(sources):
        name, digest = wanted["name"], wanted["digest"]
        page = urllib.parse.urljoin(INDEX, f"{name}/")
        links = re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', read(page).decode())
        found = [html.unescape(link) for link, has in links if has == digest]
        if not found:
            raise SystemExit(f"error: {page} has no file of {wanted['version']} with that digest")
        url = urllib.parse.urljoin(page, found[0])
        data = read(url)
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"error: {url} is not the file that sources.txt means")
        place = folder / url.rsplit("/", 1)[1]
        place.write_bytes(data)
        print(f"{place.name}: {len(data)} bytes", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
