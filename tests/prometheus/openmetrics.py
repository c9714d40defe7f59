#!/usr/bin/env python3
"""Reads OpenMetrics from standard input with the strict parser of Prometheus' Python client."""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = list(text_string_to_metric_families(sys.stdin.read()))
names = [family.name for family in families]
if len(names) != len(set(names)):
    raise SystemExit(f"a family comes twice: {names}")
for family in families:
    if not family.documentation:
        raise SystemExit(f"{family.name} has no help text")
    if family.type == "unknown" or not family.samples:
        raise SystemExit(f"{family.name} has no type or no sample")
samples = sum(len(family.samples) for family in families)
print(f"ok  OpenMetrics: {len(families)} families, {samples} samples")
