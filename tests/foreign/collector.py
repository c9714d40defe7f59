#!/usr/bin/env python3
"""Reads a request as an OpenTelemetry collector does: OTLP as JSON, by the published protobuf schema.

    collector.py FILE

Unknown fields, wrong types and ids of a wrong length are errors.
"""
import base64, json, sys

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

# OTLP writes these in hexadecimal, where protobuf's JSON has base64.
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def with_ids(value):
    if isinstance(value, list):
        return [with_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: identifier(key, inner) if key in IDS else with_ids(inner) for key, inner in value.items()}


def identifier(key, text):
    raw = bytes.fromhex(text)
    if len(raw) != IDS[key] or not any(raw):
        sys.exit(f"{key} {text!r} is no id of {IDS[key]} bytes")
    return base64.b64encode(raw).decode()


def main():
    with open(sys.argv[1]) as file:
        request = ParseDict(with_ids(json.load(file)), ExportTraceServiceRequest())
    spans = [span for r in request.resource_spans for s in r.scope_spans for span in s.spans]
    if not spans:
        sys.exit("the request has no span")
    for span in spans:
        if not span.name or not span.start_time_unix_nano <= span.end_time_unix_nano:
            sys.exit(f"a span has no name, or ends before it begins: {span}")
    names = {a.key: a.value.string_value for r in request.resource_spans for a in r.resource.attributes}
    if names.get("service.name") != "ballast":
        sys.exit(f"the resource does not name the service: {names}")
    print(f"{len(spans)} span(s) read by the published schema")


main()
