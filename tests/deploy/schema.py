"""Objects, held against the API's own schema.

The models are generated from the OpenAPI documents of Kubernetes and of Prometheus' operator. An
object is valid where its model takes it, and where nothing is lost on the way back: a field that
the schema does not know would be.
"""

import importlib
import json

MODELS = {"monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1"}


def module_of(version):
    """The module with the models of an apiVersion."""
    if version in MODELS:
        return MODELS[version]
    group, _, name = version.rpartition("/")
    group = {"": "core"}.get(group, group.removesuffix(".k8s.io").split(".")[0])
    return f"cloudcoil.models.kubernetes.{group}.{name}"


def lost(given, kept, path):
    """The paths of what an object has and its model did not keep."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept:
                yield f"{path}.{key}"
            else:
                yield from lost(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (one, other) in enumerate(zip(given, kept)):
            yield from lost(one, other, f"{path}[{index}]")
    elif given != kept:
        yield f"{path}: {given!r} became {kept!r}"


def problems(one):
    """What is wrong with an object; nothing where the schema takes it."""
    kind = one["kind"]
    model = getattr(importlib.import_module(module_of(one["apiVersion"])), kind)
    try:
        # Strict: the API server makes no number of a text, nor a text of a number.
        made = model.model_validate_json(json.dumps(one), strict=True)
    except ValueError as error:
        return [f"{kind}: {error}"]
    kept = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [f"{kind}: the schema does not know {path}" for path in lost(one, kept, "")]


def check(objects):
    found = [problem for one in objects for problem in problems(one)]
    if found:
        raise AssertionError("\n".join(found))
    return len(objects)
