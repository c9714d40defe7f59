#!/usr/bin/env python3
"""Does what the book says, and compares with what the book shows.

    book.py --bin target/release/ballast [docs/try-it.md ...]

Each page is a session of its own in an empty folder. In its blocks of ```console a line that begins
with `$ ` is typed, and what stands below it has to be printed. `…` stands for anything in a line; on
a line of its own for any lines. Runs of spaces count as one, and so do ages. A block of another kind
after a comment `<!-- file: NAME -->` is a file. `ballast up` and `run` go on until the page ends.
What only looks is asked again until it prints what is shown, as a reader would.
"""
import argparse, glob, os, re, shutil, signal, subprocess, sys, tempfile, threading, time

LOOKS = re.compile(r"^(kubectl (get|describe)|ballast (status|history|plan|explain|orphans)|curl -s)\b")
STAYS = re.compile(r"^ballast (up|run)\b(?!.*--for)")
PATIENCE_S = 30


def steps_of(text):
    """Files and commands in the order in which they stand: ("file", name, text), ("run", line, shown)."""
    steps, name, block, kind = [], None, None, None
    for line in text.splitlines():
        if block is None and (named := re.match(r"<!-- file: (\S+) -->$", line)):
            name = named.group(1)
        elif block is None and line.startswith("```"):
            block, kind = [], line[3:].strip()
        elif block is not None and line.startswith("```"):
            if name is not None:
                steps.append(("file", name, "\n".join(block) + "\n"))
            elif kind == "console":
                steps.extend(commands_of(block))
            name, block = None, None
        elif block is not None:
            block.append(line)
    return steps


def commands_of(block):
    commands = []
    for line in block:
        if line.startswith("$ "):
            commands.append(("run", line[2:], []))
        elif line.startswith("> ") and commands and not commands[-1][2]:
            kind, command, shown = commands[-1]
            commands[-1] = (kind, command + "\n" + line[2:], shown)
        elif not commands:
            raise SystemExit(f"a block of console begins without a command: {line!r}")
        else:
            commands[-1][2].append(line)
    return commands


def pattern_of(shown):
    """What is printed has to match this, line by line."""
    parts = []
    for line in shown:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
            continue
        words = []
        for word in line.split():
            # An age is another each time; it may stand in brackets.
            age = re.fullmatch(r"(\(?)\d+(?:ms|s|m)(\)?,?)", word)
            if age:
                words.append(re.escape(age[1]) + r"\d+(?:ms|s|m)" + re.escape(age[2]))
            else:
                words.append(".*".join(re.escape(p) for p in word.split("…")))
        parts.append(" ".join(words) + r"\n")
    return re.compile("".join(parts) + r"\Z")


def squeezed(printed):
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "".join(line + "\n" for line in lines)


class Session:
    def __init__(self, binary):
        self.folder = tempfile.mkdtemp(prefix="book-")
        programs = os.path.join(self.folder, ".programs")
        os.mkdir(programs)
        for name in ("ballast", "kubectl-ballast"):
            os.symlink(os.path.abspath(binary), os.path.join(programs, name))
        self.environment = {"PATH": programs + os.pathsep + os.environ["PATH"], "HOME": self.folder,
                            "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
        self.running = []

    def file(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def do(self, command, shown):
        if assigned := re.fullmatch(r"export (\w+)=(.*)", command):
            value = assigned.group(2).strip('"').replace("$PWD", self.folder)
            self.environment[assigned.group(1)] = value
            return None
        if STAYS.match(command):
            return self.start(command, shown)
        expected, end = pattern_of(shown), time.time() + PATIENCE_S
        while True:
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if expected.match(squeezed(done.stdout)):
                return None
            if not LOOKS.match(command) or time.time() > end:
                return done.stdout
            time.sleep(0.2)

    def start(self, command, shown):
        """Starts it, and waits until it has said what is shown."""
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.folder, env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        printed = []
        self.running.append((process, printed))
        threading.Thread(target=lambda: printed.extend(iter(process.stdout.readline, "")), daemon=True).start()
        # It goes on saying things: what is shown has to be the beginning.
        expected = re.compile(pattern_of(shown).pattern.removesuffix(r"\Z"))
        end = time.time() + PATIENCE_S
        while not expected.match("".join(" ".join(line.split()) + "\n" for line in list(printed))):
            if time.time() > end or process.poll() is not None:
                return "".join(printed)
            time.sleep(0.1)
        return None

    def end(self):
        for process, _ in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait()
        shutil.rmtree(self.folder)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("pages", nargs="*")
    given = arguments.parse_args()
    book = os.path.join(os.path.dirname(__file__), "../../docs")
    pages = given.pages or sorted(glob.glob(os.path.join(book, "**/*.md"), recursive=True))
    typed = 0
    for page in pages:
        with open(page) as file:
            steps = steps_of(file.read())
        commands = [step for step in steps if step[0] == "run"]
        if not commands:
            continue
        session = Session(given.bin)
        try:
            for kind, what, content in steps:
                if kind == "file":
                    session.file(what, content)
                    continue
                printed = session.do(what, content)
                if printed is not None:
                    print(f"{os.path.normpath(page)}: `{what}` printed:\n{printed}\nThe page shows:\n"
                          + "\n".join(content))
                    sys.exit(1)
                typed += 1
        finally:
            session.end()
        print(f"{os.path.basename(page)}: {len(commands)} commands print what the page shows")
    if typed == 0:
        sys.exit("no page has a command")


main()
