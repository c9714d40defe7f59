"""deploy/release: what it makes is whole, and the same when it is made again."""

import hashlib
import json
import os
import pathlib
import re
import sys
import tarfile

import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKE = ROOT / "deploy/release/make.py"


def expect(what, got, want):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")
    print(f"ok  {what}")


def sums(folder):
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    return dict(reversed(line.split("  ", 1)) for line in lines)


def check_bill(path, image):
    """By CycloneDX' own schema; every reference leads to a component; the features are told."""
    text = path.read_text()
    expect(f"{path.name}: its schema", JsonStrictValidator(SchemaVersion.V1_5).validate_str(text), None)
    bill = json.loads(text)
    known = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    asked = {other for one in bill["dependencies"] for other in one["dependsOn"]}
    expect(f"{path.name}: components", (asked <= known, len(known) > 150), (True, True))
    foreign = [one for one in bill["components"] if "hashes" not in one]
    ours = {re.search(r'name = "(.*)"', path.read_text()).group(1)
            for path in (ROOT / "crates").glob("*/Cargo.toml")}
    expect(f"{path.name}: checksums", {one["name"] for one in foreign} <= ours, True)
    expect(f"{path.name}: licences", [one["name"] for one in bill["components"] if "licenses" not in one], [])
    names = {one["name"] for one in bill["components"]}
    expect(f"{path.name}: simulation and benchmarks", names & {"sim", "bench"},
           set() if image else {"sim", "bench"})


def make(tools, binary, out):
    # Cargo and git are this machine's; Helm is the tests'.
    env = {"PATH": f"{tools.directory}:{os.environ['PATH']}", "HOME": os.environ["HOME"]}
    return tools.good(sys.executable, MAKE, "--bin", binary, "--out", out, "--helm",
                      tools.directory / "helm", env=env)


def check(tools, binary, folder):
    first, again = folder / "first", folder / "again"
    said = make(tools, binary, first)
    make(tools, binary, again)
    listed = sums(first)
    for name, digest in listed.items():
        expect(f"{name}: its checksum", hashlib.sha256((first / name).read_bytes()).hexdigest(), digest)
    expect("all files have a checksum", sorted([*listed, "SHA256SUMS"]),
           sorted(path.name for path in first.iterdir()))
    # Helm stamps the chart's archive with the time of day.
    chart = next(name for name in listed if name.endswith(".tgz"))
    same = {name for name, digest in sums(again).items() if listed[name] == digest}
    expect("the same again", set(listed) - same - {chart}, set())
    archive = next(first.glob("ballast-*-linux-*.tar.gz"))
    with tarfile.open(archive) as tar:
        names = tar.getnames()
        expect("the archive's program", tar.extractfile("ballast").read(),
               pathlib.Path(binary).read_bytes())
    expect("the archive has pages and completions",
           ("LICENSE" in names, "completions/_ballast" in names,
            sum(name.startswith("man/") for name in names) > 10), (True, True, True))
    with tarfile.open(first / chart) as tar:
        rules = yaml.safe_load(tar.extractfile("ballast/files/rules.yaml").read())
    expect("the chart's rules are files", len(rules["groups"]) > 1, True)
    plugin = yaml.safe_load((first / "ballast.yaml").read_text())
    platform, = plugin["spec"]["platforms"]
    expect("krew's checksum", platform["sha256"], listed[archive.name])
    expect("krew's files are in the archive", {one["from"] for one in platform["files"]} <= set(names), True)
    expect("krew's program", platform["bin"] in {one["to"] for one in platform["files"]}, True)
    for bill in sorted(first.glob("*.cdx.json")):
        check_bill(bill, "image" in bill.name)
    expect("what is left is said", all(word in said for word in ("cosign", "podman", "helm push")), True)
    pinned = re.findall(r"--build-arg (\w+_IMAGE)=\S+@\$\(podman image inspect \S+ '\{\{\.Digest\}\}' \S+\)", said)
    expect("the image is built on bases by digest", sorted(pinned), ["BASE_IMAGE", "RUST_IMAGE"])
    several_systems(tools, binary, first, archive)


def several_systems(tools, binary, folder, archive):
    """What another machine has made in the same folder is in the manifest and has a checksum."""
    version = archive.name.split("-")[1]
    other = folder / f"ballast-{version}-aarch64-apple-darwin.tar.gz"
    other.write_bytes(archive.read_bytes() + b"another")
    # Of other versions, or put there by hand.
    others = [f"ballast-{one}-aarch64-apple-darwin.tar.gz" for one in ("0.0.9", f"{version}1")]
    others.append(f"{other.name}.sig")
    for name in others:
        (folder / name).write_bytes(b"old")
    (folder / f"ballast-{version}").mkdir()
    make(tools, binary, folder)
    listed = sums(folder)
    found = yaml.safe_load((folder / "ballast.yaml").read_text())["spec"]["platforms"]
    told = {one["uri"].rsplit("/", 1)[1]: (one["selector"]["matchLabels"]["os"], one["sha256"])
            for one in found}
    expect("krew: an archive for each system", told, {
        archive.name: ("linux", listed[archive.name]), other.name: ("darwin", listed[other.name])})
    expect("checksums: of this version alone", [name for name in others if name in listed], [])
