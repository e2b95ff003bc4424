"""Prints the licences of every crate that is compiled into the `stepwell` binary.

Cargo says which crates those are; the texts come from the crates' own sources. Equal
texts are printed once, under the names of all crates that carry them. A crate without a
licence file is listed with the licence that its manifest names.
"""

import json
import pathlib
import subprocess
import sys

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def cargo(*arguments):
    """The output of a cargo command."""
    run = subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True)
    return run.stdout


def compiled_in():
    """`name version` of each crate in the binary, without build and test dependencies."""
    tree = cargo("tree", "--locked", "-p", "stepwell-cli", "-e", "normal,no-proc-macro", "--prefix", "none")
    return {" ".join(line.split()[:2]).replace(" v", " ") for line in tree.splitlines() if line}


def licence_files(manifest):
    """The licence files beside a crate's manifest, in the order of their names."""
    beside = sorted(pathlib.Path(manifest).parent.iterdir())
    return [path for path in beside if path.is_file() and path.name.upper().startswith(NAMES)]


def main():
    host = next(line.split()[1] for line in subprocess.run(
        ["rustc", "-vV"], check=True, capture_output=True, text=True
    ).stdout.splitlines() if line.startswith("host:"))
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", host))
    wanted = compiled_in()
    by_text = {}
    without = []
    for package in sorted(metadata["packages"], key=lambda package: package["name"]):
        crate = f"{package['name']} {package['version']}"
        if crate not in wanted or package["source"] is None:
            continue
        files = licence_files(package["manifest_path"])
        if not files:
            without.append(f"{crate}: {package['license'] or 'see ' + str(package['repository'])}")
        for path in files:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            by_text.setdefault(text, []).append(f"{crate} ({package['license']})")
    if not by_text:
        sys.exit("error: no licence was found; is the registry's source folder there?")
    print("Stepwell contains the crates below, under these licences.\n")
    for text, crates in sorted(by_text.items(), key=lambda item: item[1]):
        print("=" * 80)
        print("\n".join(sorted(set(crates))), end="\n\n")
        print(text, end="\n\n")
    if without:
        print("=" * 80)
        print("These crates ship no licence file; their manifests name:\n")
        print("\n".join(without))


main()
