#!/usr/bin/env python3
"""Holds the examples of scraping against the Deployment, and prints a config that promtool judges.

Debian's promtool knows no discovery in Kubernetes: a fixed target takes its place.
"""

import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def expect(what, good):
    if not good:
        raise SystemExit(f"not so: {what}")
    print(f"ok  {what}", file=sys.stderr)


def load(path):
    return yaml.safe_load((ROOT / "deploy" / path).read_text())


deployment = load("kustomize/base/deployment.yaml")
labels = deployment["spec"]["selector"]["matchLabels"]
ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
names = [port["name"] for port in ports]

monitor = load("prometheus/podmonitor.yaml")["spec"]
expect("the PodMonitor finds the pods",
       monitor["selector"]["matchLabels"].items() <= labels.items())
expect("its job is a label of theirs", monitor["jobLabel"] in labels)
expect("its port is theirs", [e["port"] for e in monitor["podMetricsEndpoints"]] == ["http"])
expect("the port is in the Deployment", names == ["http"])

scrape, agents = load("prometheus/scrape.yaml")
(discovery,) = scrape.pop("kubernetes_sd_configs")
key, value = discovery["selectors"][0]["label"].split("=")
expect("the scrape config finds the pods", labels.get(key) == value)
kept = [rule["regex"] for rule in scrape["relabel_configs"] if rule.get("action") == "keep"]
expect("it keeps their port", kept == names)
scrape["static_configs"] = [{"targets": ["127.0.0.1:10270"]}]

daemons = load("kustomize/components/node-agent/daemonset.yaml")["spec"]
(discovery,) = agents.pop("kubernetes_sd_configs")
key, value = discovery["selectors"][0]["label"].split("=")
expect("the scrape config finds the agents", daemons["selector"]["matchLabels"].get(key) == value)
(listen,) = [arg for arg in daemons["template"]["spec"]["containers"][0]["args"]
             if arg.startswith("--listen=")]
places = [rule["replacement"] for rule in agents["relabel_configs"]
          if rule["target_label"] == "__address__"]
expect("it asks their port", {place.rsplit(":", 1)[1] for place in places}
       == {listen.rsplit(":", 1)[1]})
agents["static_configs"] = [{"targets": ["127.0.0.1:10272"]}]
yaml.safe_dump({"scrape_configs": [scrape, agents]}, sys.stdout)
