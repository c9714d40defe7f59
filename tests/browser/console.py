"""The web console in a real browser: `ballast up` runs, Chromium looks.

Needs Chromium, Playwright's Python client and axe-core (in axe-playwright-python); .ci/run installs
them.
CONSOLE_PICTURES=FOLDER keeps screenshots of every page.
"""

import argparse
import importlib.resources
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

ANNOTATION = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"
PAGES = {
    "/": "overview",
    "/topology": "topology",
    "/services/default/web": "service",
    "/services/default/web/explained": "explained",
    "/plan": "nothing",
    "/timeline": "timeline",
    "/findings": "findings",
}
PATIENCE_S = 60


class Up:
    """`ballast up` with flags, until left."""

    def __init__(self, binary, *flags):
        self.command = [binary, "up", "--port", "0", *flags]

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.console = self.kubernetes = None
        for line in self.process.stdout:
            if found := re.search(r"^  Kubernetes API +(\S+)", line):
                self.kubernetes = found[1]
            if found := re.search(r"^  console +(\S+)/$", line):
                self.console = found[1]
            if "What happens" in line:
                break
        if not self.console or not self.kubernetes:
            sys.exit(f"{self.command} did not say where it listens")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def write(self, method, path, body, kind="application/json"):
        request = urllib.request.Request(
            self.kubernetes + path, json.dumps(body).encode(), {"content-type": kind}, method=method
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def create(self, name, port=80, annotations=None, namespace="default"):
        self.write("POST", f"/api/v1/namespaces/{namespace}/services", {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
            "spec": {
                "type": "LoadBalancer",
                "selector": {"app": name},
                "ports": [{"name": "http", "port": port, "targetPort": 8080}],
            },
        })
        self.wait_for_page(f"/services/{namespace}/{name}")

    def wait(self, what, holds):
        """Asks until it holds; where the console has no such page yet, its answer is an HTTP error."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                if holds():
                    return
            except urllib.error.HTTPError:
                pass
            time.sleep(0.1)
        sys.exit(what)

    def wait_for_page(self, path):
        """A Service has a page once the controller's watch has told of it."""
        self.wait(f"there is no page {path}", lambda: self.get(path))

    def get(self, path):
        with urllib.request.urlopen(self.console + path) as answer:
            return answer.read()

    def edit(self, name, change):
        path = f"/api/v1/namespaces/default/services/{name}"
        self.write("PATCH", path, change, "application/merge-patch+json")

    def wait_for_programmed(self, count):
        def programmed():
            services = json.loads(self.get("/status"))["services"]
            return sum(s["state"] == "programmed" for s in services) >= count

        self.wait(f"{count} Services are not programmed", programmed)


class Browser:
    """Chromium, and what must hold of whatever it loads."""

    def __init__(self, playwright, chromium):
        axe = importlib.resources.files("axe_playwright_python") / "axe.min.js"
        self.axe = axe.read_text(encoding="utf-8")
        self.chromium = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        self.contexts, self.foreign, self.complaints = [], [], []

    def open(self, origin, scheme="light", width=1280, height=800):
        # axe-core is put into the page by the test, which the page's policy rightly forbids.
        context = self.chromium.new_context(
            base_url=origin,
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            reduced_motion="reduce",
        )
        self.contexts.append(context)
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(origin + "/") or self.foreign.append(r.url))
        page.on("console", self.hear)
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        return page

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location['url']})")

    def close(self):
        """Before the program ends: a page that listens in vain complains."""
        while self.contexts:
            self.contexts.pop().close()

    def check(self, page, what):
        page.evaluate(self.axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        bad = [v for v in found if v["impact"] in ("serious", "critical")]
        for violation in bad:
            nodes = "; ".join(n["html"] for n in violation["nodes"][:3])
            print(f"{what}: {violation['impact']}: {violation['help']}: {nodes}")
        if bad:
            sys.exit(f"{what} has {len(bad)} serious accessibility faults")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            sys.exit(f"{what} is {wide} px wider than the window")
        # A tile covers what runs out of the one before it.
        over = page.evaluate(
            "[...document.querySelectorAll('.tiles a, .tiles .badge')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.trim())"
        )
        if over:
            sys.exit(f"{what}: text runs out of its box: {', '.join(over)}")


def picture(page, name):
    folder = os.environ.get("CONSOLE_PICTURES")
    if not folder:
        return
    file = os.path.join(folder, f"console-{name}.png")
    page.screenshot(path=file, animations="disabled")
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(file) as image:
        image.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(file, optimize=True)


def slow(browser, binary):
    """Waiting, programmed, drawn; an edit in the plan before it is carried out; a refusal."""
    with Up(binary, "--lro-ms", "1500", "--services", "1") as up:
        page = browser.open(up.console)
        up.create("shop")
        page.goto("/services/default/shop")
        standing = page.locator("#standing")
        expect(standing).to_contain_text("waiting", timeout=PATIENCE_S * 1000)
        expect(page.get_by_role("heading", name="Waits on")).to_be_visible()
        browser.check(page, "a waiting Service")
        picture(page, "waiting")
        # Nothing is reloaded by hand from here on.
        expect(standing).to_contain_text("programmed", timeout=PATIENCE_S * 1000)
        drawing = page.locator("svg.topology")
        for part in ["default/shop", "20.0.0.", "TCP 80 → 80", "probe TCP", "kubernetes", "3 members"]:
            expect(drawing).to_contain_text(part)
        expect(page.locator("#said")).to_contain_text("is programmed")
        expect(page.get_by_role("table", name="History")).to_contain_text("is programmed at")
        print("ok: a Service waits, is programmed and is drawn")

        page.goto("/plan")
        expect(page.locator("#nothing")).to_have_text("Nothing to do.", timeout=PATIENCE_S * 1000)
        up.edit("shop", {"spec": {"ports": [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "admin", "port": 8443, "targetPort": 8443},
        ]}})
        change = page.locator("article.change", has_text="change load balancer kubernetes")
        expect(change).to_contain_text("8443")
        expect(change).to_contain_text("being written now")
        expect(change).to_contain_text("default/shop")
        rules = page.request.get("/topology").text()
        if "TCP 8443" in rules:
            sys.exit("the edit was carried out before it was seen in the plan")
        browser.check(page, "a plan")
        picture(page, "plan")
        expect(page.locator("#nothing")).to_be_visible(timeout=PATIENCE_S * 1000)
        page.goto("/topology")
        expect(page.locator("svg.topology").first).to_contain_text("TCP 8443")
        print("ok: an edit is in the plan before it is carried out")

        # What was written is told with its cause and its difference, on both pages.
        phone = browser.open(up.console, width=390, height=844)
        for path, name in [("/timeline", "difference"), ("/services/default/shop", "difference-service")]:
            difference(browser, page, path, name)
            difference(browser, phone, path, f"{name}-phone")
        print("ok: a write is told with its cause and its difference, at a desk and on a phone")

        up.create("wrong", 81, {ANNOTATION: "maybe<b>"})
        page.goto("/services/default/wrong")
        expect(page.locator("#standing")).to_contain_text("refused", timeout=PATIENCE_S * 1000)
        fault = page.locator(".fault")
        for part in [ANNOTATION, "maybe<b>", "must be a whole number of minutes from 4 to 100"]:
            expect(fault).to_contain_text(part)
        browser.check(page, "a refused Service")
        page.goto("/findings")
        expect(page.locator("article.finding")).to_contain_text(ANNOTATION)
        page.goto("/")
        expect(page.get_by_role("row", name="default/wrong")).to_contain_text("refused")
        browser.close()
        print("ok: a refused Service shows the reason and the annotation")


def difference(browser, page, path, name):
    """An edit's write on a page: its cause, and its difference once it is unfolded."""
    page.goto(path)
    edited = page.get_by_role("row").filter(has_text="default/shop was edited")
    row = edited.filter(has_text="loadBalancers/").first
    expect(row).to_contain_text("spec.ports")
    expect(row).to_contain_text("correlation id")
    row.locator("summary", has_text="changed").first.click()
    unfolded = row.locator("details.difference")
    expect(unfolded).to_contain_text("8443")
    expect(unfolded.locator(".new").first).to_be_visible()
    browser.check(page, f"{name} on {path}")
    picture(page, name)


def narrowed(browser, page, width):
    """State, namespace and search narrow the list of Services, alone and together."""
    named = page.locator("main table a[href^='/services/']")
    page.goto("/")
    expect(named).to_have_count(4)
    refused = page.locator(".tiles .refused a")
    expect(refused).to_contain_text("1")
    refused.click()
    page.wait_for_url("**/?state=refused")
    expect(named).to_have_attribute("href", "/services/team-b/wrong")
    browser.check(page, f"refused Services ({width} px)")
    # The tile that is chosen leads back.
    page.locator(".tiles a[aria-current]").click()
    expect(named).to_have_count(4)
    spaces = page.get_by_role("navigation", name="Namespaces")
    spaces.get_by_role("link", name="team-b (2)").click()
    page.wait_for_url("**/?namespace=team-b")
    expect(spaces.locator("[aria-current]")).to_have_text("team-b (2)")
    expect(named).to_have_count(2)
    browser.check(page, f"one namespace ({width} px)")
    page.locator(".tiles .programmed a").click()
    page.wait_for_url("**/?state=programmed&namespace=team-b")
    expect(named).to_have_attribute("href", "/services/team-b/right")
    page.get_by_label("Search Services").fill("wrong")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?state=programmed&namespace=team-b&q=wrong")
    expect(named).to_have_count(0)
    expect(page.locator(".empty")).to_have_text("No Service is like that.")
    picture(page, f"narrowed-{width}")


def filters(browser, binary):
    with Up(binary, "--services", "2", "--lro-ms", "200") as up:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}}
        up.write("POST", "/api/v1/namespaces", space)
        up.create("wrong", 81, {ANNOTATION: "maybe"}, namespace="team-b")
        up.create("right", 82, namespace="team-b")
        up.wait_for_programmed(3)
        for width, height in [(1280, 800), (390, 844)]:
            narrowed(browser, browser.open(up.console, width=width, height=height), width)
        browser.close()
    print("ok: Services by state, namespace and search, at a desk and on a phone")


def by_keyboard(page):
    page.goto("/topology")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search Services")).to_be_focused()
    page.keyboard.type("web")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topology?q=web")
    page.get_by_label("100 %").focus()
    before = page.locator("svg.topology").first.bounding_box()["width"]
    page.keyboard.press("ArrowLeft")
    after = page.locator("svg.topology").first.bounding_box()["width"]
    if not after < before:
        sys.exit(f"the drawing does not shrink: {before} px, then {after} px")
    page.keyboard.press("ArrowRight")
    page.locator("svg.topology a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/services/default/web")
    print("ok: by keyboard alone")


def every_page(browser, binary):
    with Up(binary, "--services", "6", "--lro-ms", "200") as up:
        up.create("wrong", 81, {ANNOTATION: "maybe"})
        up.wait_for_programmed(6)
        for scheme, width, height in [("light", 1280, 800), ("dark", 1280, 800), ("light", 390, 844), ("dark", 390, 844)]:
            page = browser.open(up.console, scheme, width, height)
            for path in PAGES:
                answer = page.goto(path)
                policy = answer.headers.get("content-security-policy", "")
                if "default-src 'none'" not in policy or "unsafe" in policy:
                    sys.exit(f"{path} is sent with the policy {policy!r}")
                expect(page.locator("#link")).to_have_text("Live")
                browser.check(page, f"{path} ({scheme}, {width} px)")
                name = PAGES[path]
                suffix = ("-dark" if scheme == "dark" else "") + ("-phone" if width < 600 else "")
                picture(page, name + suffix)
            browser.close()
        page = browser.open(up.console, width=390, height=844)
        page.goto("/?q=app")
        order = page.get_by_role("navigation", name="Order")
        order.get_by_role("link", name="since").click()
        page.wait_for_url("**/?q=app&sort=since")
        expect(order.locator("[aria-current]")).to_have_text("since")
        browser.check(page, "a sorted list")
        page.goto("/timeline")
        page.get_by_role("link", name="last 15 minutes").click()
        page.wait_for_url("**/timeline?span=15m")
        chosen = page.get_by_role("navigation", name="Time drawn").locator("[aria-current]")
        expect(chosen).to_have_text("last 15 minutes")
        expect(page.locator("svg.lanes")).to_contain_text("loadBalancers/kubernetes")
        browser.check(page, "the last 15 minutes")
        counted = page.get_by_role("navigation", name="Pages")
        expect(counted).to_contain_text(re.compile(r"Findings \(\d+\)"))
        by_keyboard(browser.open(up.console))
        browser.close()
    print("ok: every page, light and dark, desk and phone")


def pods(browser, binary):
    with Up(binary, "--container-load-balancer") as up:
        up.wait_for_programmed(2)
        page = browser.open(up.console)
        page.goto("/services/default/web")
        expect(page.locator("svg.topology")).to_contain_text("pod 10.244.")
        picture(page, "pods")
        browser.close()
    print("ok: pods of the container load balancer are drawn")


def without_script(browser, binary):
    with Up(binary) as up:
        up.wait_for_programmed(2)
        context = browser.chromium.new_context(base_url=up.console, java_script_enabled=False)
        page = context.new_page()
        page.goto("/topology")
        before = page.locator("svg.topology").first.bounding_box()["width"]
        page.get_by_label("50 %", exact=True).check()
        after = page.locator("svg.topology").first.bounding_box()["width"]
        if not after < before:
            sys.exit("drawings cannot be sized without the script")
        context.close()
    print("ok: without the script")


def thousand(browser, binary):
    """Time of each page's answer; the browser's own work is not part of it. Then a long list."""
    with Up(binary, "--services", "1000", "--nodes", "20") as up:
        up.wait_for_programmed(200)  # a public load balancer has room for no more frontends
        # What `explain` says takes several plans of everything: it is asked for, and not measured.
        paths = [p for p in PAGES if not p.endswith("/explained")] + ["/?q=app-77", "/topology?q=app-77", "/topology?page=9", "/?page=15"]
        slowest = 0
        for path in paths:
            times = []
            for _ in range(3):
                began = time.monotonic()
                with urllib.request.urlopen(up.console + path) as answer:
                    size = len(answer.read())
                times.append((time.monotonic() - began) * 1000)
            print(f"  {path:28} {sorted(times)[1]:6.0f} ms {size / 1000:6.0f} kB")
            slowest = max(slowest, sorted(times)[1])
        page = browser.open(up.console)
        page.goto("/topology")
        browser.check(page, "the topology of 1,000 Services")
        picture(page, "thousand")
        page.goto("/topology?balancer=kubernetes")
        page.locator("svg.topology a", has_text="12 more").first.click()
        page.wait_for_url("**pool=**")
        members = page.get_by_role("table", name="Members")
        expect(members.get_by_role("row")).to_have_count(21)
        browser.check(page, "all members of a pool")
        browser.close()
    # Time is shown, and judged by whoever reads it: the machine may be busy with something else.
    print(f"ok: 1,000 Services, the slowest page within {slowest:.0f} ms (300 wanted)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    tests = [slow, every_page, filters, pods, without_script, thousand]
    with sync_playwright() as playwright:
        browser = Browser(playwright, args.chromium)
        for test in tests:
            if not args.only or test.__name__ in args.only:
                test(browser, args.bin)
        if browser.foreign:
            sys.exit(f"requests left the origin: {browser.foreign}")
        if browser.complaints:
            sys.exit(f"the browser complains: {browser.complaints}")
        browser.chromium.close()


if __name__ == "__main__":
    main()
