#!/usr/bin/env python3
"""Makes the files of a release in a folder, and says what is left for a person.

    cargo build --locked --profile ship
    deploy/release/make.py --bin target/ship/ballast [--helm HELM] [--out dist]

archive     ballast-VERSION-TARGET.tar.gz: program, licence, manual pages, completions
chart       ballast-VERSION.tgz, with Helm (left out without)
manifests   ballast-kustomize-VERSION.tar.gz: deploy/kustomize, admission, azure and prometheus
SBOM        ballast-VERSION-TARGET.cdx.json and ballast-image-VERSION.cdx.json
plugin      ballast.yaml: the krew manifest of `kubectl ballast`
SHA256SUMS  of all these

For several systems run it once on each, with one folder: manifest and checksums name every archive of the
version that lies there. Nothing is signed and nothing leaves this machine. The same commit and the same
program give the same archives.
"""

import argparse
import gzip
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOWNLOADS = "https://github.com/ballast-lb/ballast/releases/download"
PLATFORMS = {"x86_64-unknown-linux-gnu": ("linux", "amd64"),
             "aarch64-unknown-linux-gnu": ("linux", "arm64"),
             "x86_64-apple-darwin": ("darwin", "amd64"),
             "aarch64-apple-darwin": ("darwin", "arm64")}
SHELLS = {"bash": "ballast.bash", "zsh": "_ballast", "fish": "ballast.fish"}


def run(*words):
    return subprocess.run(list(map(str, words)), cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout


def host():
    return re.search(r"^host: (\S+)$", run("rustc", "-vV"), re.M).group(1)


def commit_time():
    try:
        return int(run("git", "log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError):
        return 0


def pack(target, files, when):
    """A .tar.gz of (name, bytes, mode), the same for the same files."""
    with target.open("wb") as out, gzip.GzipFile("", "wb", 6, out, mtime=when) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data, mode in sorted(files):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(data), mode, when
                tar.addfile(entry, io.BytesIO(data))


def program(args, folder, when):
    """The archive that people download, and krew."""
    binary = pathlib.Path(args.bin).resolve()
    files = [("ballast", binary.read_bytes(), 0o755),
             ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644)]
    with tempfile.TemporaryDirectory() as pages:
        run(binary, "man", pages)
        files += [(f"man/{page.name}", page.read_bytes(), 0o644)
                  for page in pathlib.Path(pages).iterdir()]
    files += [(f"completions/{name}", run(binary, "completions", shell).encode(), 0o644)
              for shell, name in SHELLS.items()]
    pack(folder / f"ballast-{args.version}-{args.target}.tar.gz", files, when)


def manifests(args, folder, when):
    files = []
    for part in ("kustomize", "admission", "azure", "prometheus"):
        for path in (ROOT / "deploy" / part).rglob("*"):
            if path.is_file():
                name = str(path.relative_to(ROOT / "deploy"))
                files.append((f"ballast-{args.version}/{name}", path.read_bytes(), 0o644))
    files.append((f"ballast-{args.version}/hold.yaml", (ROOT / "deploy/hold.yaml").read_bytes(), 0o644))
    pack(folder / f"ballast-kustomize-{args.version}.tar.gz", files, when)


def chart(args, folder):
    """The chart; links to deploy/prometheus become files, of the version and with its program's."""
    if not args.helm:
        return
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(place) / "ballast"
        shutil.copytree(ROOT / "deploy/helm/ballast", copy)
        run(args.helm, "package", copy, "--destination", folder, "--version", args.version,
            "--app-version", args.version)


def bills(args, folder):
    for name, words in ((f"ballast-{args.version}-{args.target}", []),
                        (f"ballast-image-{args.version}", ["--no-default-features"])):
        path = folder / f"{name}.cdx.json"
        path.write_text(run(sys.executable, HERE / "sbom.py", "--target", args.target, *words))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def archives(args, folder):
    """The version's archives of every system in the folder: target and file."""
    for target in sorted(PLATFORMS):
        path = folder / f"ballast-{args.version}-{target}.tar.gz"
        if path.exists():
            yield target, path


def platform(args, target, archive):
    system, machine = PLATFORMS[target]
    return f"""\
  - selector:
      matchLabels:
        os: {system}
        arch: {machine}
    uri: {DOWNLOADS}/v{args.version}/{archive.name}
    sha256: {digest(archive)}
    files:
    - from: ballast
      to: kubectl-ballast
    - from: LICENSE
      to: .
    bin: kubectl-ballast
"""


def krew(args, folder):
    """krew unpacks the archive of its system and links the program under kubectl's name."""
    text = f"""\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: ballast
spec:
  version: v{args.version}
  homepage: https://github.com/ballast-lb/ballast
  shortDescription: Azure load balancers of Services
  description: |
    Shows what the controller Ballast has made in Azure for each Service of type
    LoadBalancer, what a Service waits for and why, and what a change of a manifest
    would write.
  platforms:
"""
    found = [platform(args, target, path) for target, path in archives(args, folder)]
    (folder / "ballast.yaml").write_text(text + "".join(found))


def of_release(args, folder):
    """Every file of the version in the folder, those of other systems included."""
    version = args.version
    names = [f"ballast-kustomize-{version}.tar.gz", f"ballast-{version}.tgz",
             f"ballast-image-{version}.cdx.json", "ballast.yaml"]
    names += [f"ballast-{version}-{target}{end}" for target in PLATFORMS for end in (".tar.gz", ".cdx.json")]
    return sorted(path for path in map(folder.joinpath, names) if path.is_file())


def pinned_bases():
    """The Containerfile's base images, and the build arguments that name them by digest."""
    text = (ROOT / "deploy/Containerfile").read_text()
    bases = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", text, re.M))
    inspect = "podman image inspect --format '{{.Digest}}'"
    pinned = [f"--build-arg {name}={image.rpartition(':')[0]}@$({inspect} {image})"
              for name, image in bases.items()]
    return " ".join(bases.values()), " \\\n         ".join(pinned)


def what_is_left(args, folder, files):
    image = "REGISTRY/ballast"
    names = " ".join(path.name for path in files)
    bases, pinned = pinned_bases()
    return f"""\
{folder}: {names} SHA256SUMS

What a person does now, with keys and accounts that this script does not have:

1. Build the image on base images of known digests and push it, and note the digest that the registry
   answers:
     podman pull {bases}
     podman build -f deploy/Containerfile -t {image}:{args.version} \\
         --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" \\
         {pinned} .
     podman push --digestfile image.digest {image}:{args.version}
2. Sign and attest by digest, never by tag:
     cosign sign {image}@$(cat image.digest)
     cosign attest --type cyclonedx --predicate {folder}/ballast-image-{args.version}.cdx.json \\
         {image}@$(cat image.digest)
   Provenance (who built what from which commit) is attested by the builder, not by hand: in a build
   service use its own SLSA attestation; built by hand there is none, and the release says so.
3. Sign the checksums:
     cosign sign-blob --bundle {folder}/SHA256SUMS.bundle {folder}/SHA256SUMS
4. Push the chart:
     helm push {folder}/ballast-{args.version}.tgz oci://REGISTRY/charts
5. Tag the commit v{args.version}, upload all files, and propose ballast.yaml to krew's index.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, help="the program, of the profile ship")
    parser.add_argument("--helm", default=shutil.which("helm"))
    parser.add_argument("--out", default="dist")
    parser.add_argument("--target", default=None, help="what the program runs on")
    args = parser.parse_args()
    args.target = args.target or host()
    if args.target not in PLATFORMS:
        parser.error(f"krew has no name for {args.target}: add it to PLATFORMS")
    args.version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    folder = pathlib.Path(args.out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    when = commit_time()
    program(args, folder, when)
    manifests(args, folder, when)
    chart(args, folder)
    bills(args, folder)
    krew(args, folder)
    files = of_release(args, folder)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums)
    print(what_is_left(args, folder, files), end="")
    if not args.helm:
        print("\nThere is no Helm here: the chart was left out (--helm FILE).", file=sys.stderr)


if __name__ == "__main__":
    main()
