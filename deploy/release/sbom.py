#!/usr/bin/env python3
"""The program's bill of materials, as CycloneDX 1.5 in JSON, from what Cargo resolves.

    sbom.py [--no-default-features] [--features LIST] [--target TRIPLE] >ballast.cdx.json

It names every package that the program is linked from, or that is a macro of one: version, licence,
the checksum in Cargo.lock, and which package asks for which. The same checkout gives the same bytes.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = uuid.UUID("6f1f5bd0-2f2c-5f0e-9a59-3d2b6f1d7c11")


def run(*words):
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def host():
    return re.search(r"^host: (\S+)$", run("rustc", "-vV"), re.M).group(1)


def commit():
    """Commit and its time; nothing without git."""
    try:
        return run("git", "log", "-1", "--format=%H %cI").split()
    except (OSError, subprocess.CalledProcessError):
        return ["unknown", None]


def metadata(args):
    words = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline",
             "--manifest-path", "crates/ballast/Cargo.toml", "--filter-platform", args.target]
    if args.no_default_features:
        words.append("--no-default-features")
    if args.features:
        words += ["--features", args.features]
    return json.loads(run(*words))


def linked(found):
    """The ids of ballast and of all it is made from, and what each of them asks for."""
    name = {package["id"]: package["name"] for package in found["packages"]}
    asks = {}
    for node in found["resolve"]["nodes"]:
        normal = [dep["pkg"] for dep in node["deps"]
                  if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        asks[node["id"]] = sorted(set(normal))
    root = next(one for one in found["workspace_members"] if name[one] == "ballast")
    reached, waiting = {root}, [root]
    while waiting:
        for one in asks[waiting.pop()]:
            if one not in reached:
                reached.add(one)
                waiting.append(one)
    return root, {one: asks[one] for one in reached}


def checksums():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, sums, kind="library"):
    made = {"type": kind, "bom-ref": reference(package), "name": package["name"],
            "version": package["version"], "purl": reference(package)}
    if package.get("description"):
        made["description"] = " ".join(package["description"].split())
    if package.get("license"):
        # The older way to write "or" is no SPDX.
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = sums.get((package["name"], package["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package.get("repository"):
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def bill(args):
    found = metadata(args)
    root, asks = linked(found)
    packages = {package["id"]: package for package in found["packages"]}
    sums = checksums()
    revision, when = commit()
    features = next(n["features"] for n in found["resolve"]["nodes"] if n["id"] == root)
    properties = [{"name": "ballast:commit", "value": revision},
                  {"name": "ballast:features", "value": ",".join(f for f in features if f != "default")},
                  {"name": "ballast:target", "value": args.target}]
    described = {"component": component(packages[root], sums, "application"), "properties": properties}
    if when:
        described["timestamp"] = when
    order = sorted((one for one in asks if one != root), key=lambda one: reference(packages[one]))
    graph = [{"ref": reference(packages[one]),
              "dependsOn": sorted(reference(packages[other]) for other in asks[one])}
             for one in [root, *order]]
    made = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": described,
        "components": [component(packages[one], sums) for one in order], "dependencies": graph,
    }
    number = uuid.uuid5(NAMESPACE, json.dumps(made, sort_keys=True))
    return {"serialNumber": f"urn:uuid:{number}", **made}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-default-features", action="store_true")
    parser.add_argument("--features", default="")
    parser.add_argument("--target", default=None, help="target triple; this machine's without")
    args = parser.parse_args()
    args.target = args.target or host()
    json.dump(bill(args), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
