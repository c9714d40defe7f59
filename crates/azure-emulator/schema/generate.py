#!/usr/bin/env python3
"""Writes contracts.json: which members, types and enumerations Azure's published contracts have.

    python3 generate.py            # downloads the packages with pip, writes contracts.json
    python3 generate.py --check    # says whether contracts.json is what the packages give

The source are the generated models of Microsoft's Python packages (MIT licence). Only facts are
taken: names, types, what is required, what only the service writes, and values of enumerations.
Older packages describe a model by `_attribute_map` and `_validation`, newer ones by `rest_field`.

A type is written as
    text, int, float, bool, any, enum NAME, TYPE, [TYPE], {TYPE}
and before it `!` where the member is required, `~` where only the service writes it.
"""
import argparse, ast, json, pathlib, subprocess, sys, tempfile, zipfile

HERE = pathlib.Path(__file__).parent
TARGET = HERE / "contracts.json"

# Microsoft.Network, oldest first. A request of a version in between is held to the next newer one.
NETWORK = {
    "kinds": {
        "loadBalancers": "LoadBalancer",
        "loadBalancers/backendAddressPools": "BackendAddressPool",
        "loadBalancers/inboundNatRules": "InboundNatRule",
        "publicIPAddresses": "PublicIPAddress",
        "publicIPPrefixes": "PublicIPPrefix",
        "networkSecurityGroups": "NetworkSecurityGroup",
        "networkSecurityGroups/securityRules": "SecurityRule",
        "virtualNetworks": "VirtualNetwork",
        "virtualNetworks/subnets": "Subnet",
        "routeTables": "RouteTable",
        "routeTables/routes": "Route",
        "natGateways": "NatGateway",
        "serviceGateways": "ServiceGateway",
        "privateLinkServices": "PrivateLinkService",
        "privateLinkServices/privateEndpointConnections": "PrivateEndpointConnection",
        "networkInterfaces": "NetworkInterface",
    },
    "patches": {
        kind: "TagsObject"
        for kind in ["loadBalancers", "publicIPAddresses", "publicIPPrefixes",
                     "networkSecurityGroups", "virtualNetworks", "routeTables", "natGateways",
                     "serviceGateways", "privateLinkServices", "networkInterfaces"]
    },
    "actions": {
        "serviceGateways/updateServices": "ServiceGatewayUpdateServicesRequest",
        "serviceGateways/updateAddressLocations": "ServiceGatewayUpdateAddressLocationsRequest",
        "loadBalancers/migrateToIpBased": "MigrateLoadBalancerToIpBasedRequest",
    },
    "packages": [("2025-05-01", "30.2.0"), ("2025-09-01", "32.0.0"), ("2026-03-01", "33.1.0")],
    # Versions that the service has beside those: the folders of Azure/azure-rest-api-specs,
    # specification/network/resource-manager/Microsoft.Network, and the packages in between.
    "versions": """2015-06-15 2016-03-30 2016-06-01 2016-09-01 2016-12-01 2017-03-01 2017-06-01
        2017-08-01 2017-09-01 2017-10-01 2017-11-01 2018-01-01 2018-02-01 2018-04-01 2018-06-01
        2018-07-01 2018-08-01 2018-10-01 2018-11-01 2018-12-01 2019-02-01 2019-04-01 2019-06-01
        2019-07-01 2019-08-01 2019-09-01 2019-11-01 2019-12-01 2020-03-01 2020-04-01 2020-05-01
        2020-06-01 2020-07-01 2020-08-01 2020-11-01 2021-02-01 2021-03-01 2021-05-01 2021-08-01
        2022-01-01 2022-05-01 2022-07-01 2022-09-01 2022-11-01 2023-02-01 2023-04-01 2023-05-01
        2023-06-01 2023-09-01 2023-11-01 2024-01-01 2024-03-01 2024-05-01 2024-07-01 2024-10-01
        2025-01-01 2025-03-01 2025-07-01 2026-01-01""",
}
COMPUTE = {
    "kinds": {
        "virtualMachineScaleSets": "VirtualMachineScaleSet",
        "virtualMachineScaleSets/virtualMachines": "VirtualMachineScaleSetVM",
        "virtualMachines": "VirtualMachine",
        "availabilitySets": "AvailabilitySet",
    },
    "patches": {
        "virtualMachineScaleSets": "VirtualMachineScaleSetUpdate",
        "virtualMachines": "VirtualMachineUpdate",
        "availabilitySets": "AvailabilitySetUpdate",
    },
    "actions": {
        "virtualMachineScaleSets/manualupgrade": "VirtualMachineScaleSetVMInstanceRequiredIDs",
        "virtualMachineScaleSets/delete": "VirtualMachineScaleSetVMInstanceRequiredIDs",
    },
    "packages": [("2025-04-01", "37.0.1"), ("2026-04-01", "39.0.0")],
    "versions": """2015-06-15 2016-03-30 2017-03-30 2017-12-01 2018-04-01 2018-06-01 2018-10-01
        2019-03-01 2019-07-01 2019-12-01 2020-06-01 2020-12-01 2021-03-01 2021-04-01 2021-07-01
        2021-11-01 2022-03-01 2022-08-01 2022-11-01 2023-03-01 2023-07-01 2023-09-01 2024-03-01
        2024-07-01 2024-11-01 2025-11-01 2026-03-01""",
}
PROVIDERS = [
    ("Microsoft.Network", "azure-mgmt-network", NETWORK),
    ("Microsoft.Compute", "azure-mgmt-compute", COMPUTE),
]
PLAIN = {"str": "text", "int": "int", "long": "int", "float": "float", "bool": "bool",
         "iso-8601": "text", "rfc-1123": "text", "duration": "text", "date": "text", "time": "text",
         "base64": "text", "bytes": "text", "bytearray": "text", "object": "any", "Any": "any",
         "JSON": "any"}


# Enumerations whose values the service adds to without a new api-version: a machine's sizes are
# those that its region lists.
OPEN = {"VirtualMachineSizeTypes"}


class Models:
    """The models of one package, from the text of its modules; nothing of it is run."""

    def __init__(self, models, enums):
        self.classes = {n.name: n for n in ast.parse(models).body if isinstance(n, ast.ClassDef)}
        self.enums = {}
        for node in ast.parse(enums).body:
            if isinstance(node, ast.ClassDef):
                self.enums[node.name] = [
                    line.value.value for line in node.body if isinstance(line, ast.Assign)]
        self.old = "_attribute_map" in models
        self.used_enums = {}

    def shapes(self, roots):
        """The types that the roots reach, by name."""
        found, open_ = {}, list(roots)
        while open_:
            name = open_.pop()
            if name in found:
                continue
            new = self.old_shapes(name) if self.old else {name: self.new_shape(name)}
            found.update(new)
            for members in new.values():
                for kind in members.values():
                    bare = kind.lstrip("!~[{").rstrip("]}")
                    if bare in self.classes and bare not in found:
                        open_.append(bare)
        return found

    def kind(self, name):
        """A type by its name."""
        if name in PLAIN:
            return PLAIN[name]
        if name in OPEN:
            return "text"
        if name in self.enums:
            self.used_enums[name] = self.enums[name]
            return "enum " + name
        assert name in self.classes, name
        return name

    # models with _attribute_map ----------------------------------------------------------
    def old_shapes(self, name):
        body = {}
        for base in self.classes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                body.update(self.assigned(base.id))
        body.update(self.assigned(name))
        validation, hints = body.get("_validation", {}), self.hints(name)
        shapes = {name: {}}
        for attribute, field in body.get("_attribute_map", {}).items():
            rules = validation.get(attribute, {})
            kind = self.old_kind(field["type"], hints.get(attribute))
            mark = "~" if rules.get("readonly") else "!" if rules.get("required") else ""
            path = field["key"].replace("\\\\.", "\0").split(".")
            at = name
            for part in path[:-1]:
                below = at + "." + part
                shapes[at].setdefault(part, below)
                shapes.setdefault(below, {})
                at = below
            shapes[at][path[-1].replace("\0", ".")] = mark + kind
        return shapes

    def assigned(self, name):
        found = {}
        for line in self.classes[name].body:
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Dict):
                found[line.targets[0].id] = ast.literal_eval(line.value)
        return found

    def hints(self, name):
        """Attribute -> the annotation of the constructor, which names enumerations."""
        for line in self.classes[name].body:
            if isinstance(line, ast.FunctionDef) and line.name == "__init__":
                return {a.arg: ast.unparse(a.annotation) for a in line.args.kwonlyargs}
        return {}

    def old_kind(self, kind, hint):
        if kind[0] in "[{":
            return kind[0] + self.old_kind(kind[1:-1], hint) + kind[-1]
        if kind == "str" and hint and "_models." in hint:
            name = hint.split("_models.")[1].split("'")[0].split('"')[0]
            if name in self.enums:
                return self.kind(name)
        return self.kind(kind)

    # models with rest_field ---------------------------------------------------------------
    def new_shape(self, name):
        members = {}
        node = self.classes[name]
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                members.update(self.new_shape(base.id))
        for line in node.body:
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.value, ast.Call)):
                continue
            given = {k.arg: k.value for k in line.value.keywords}
            member = ast.literal_eval(given["name"]) if "name" in given else line.target.id
            visible = ast.literal_eval(given["visibility"]) if "visibility" in given else []
            kind, optional = self.new_kind(line.annotation)
            mark = "~" if visible == ["read"] else "" if optional else "!"
            members[member] = mark + kind
        return members

    def new_kind(self, node):
        """The type of an annotation, and whether it is optional."""
        if isinstance(node, ast.Constant):
            return self.kind(node.value.removeprefix("_models.")), False
        if isinstance(node, ast.Name):
            return self.kind(node.id), False
        if isinstance(node, ast.Attribute):
            return ("text" if ast.unparse(node).startswith("datetime.") else self.kind(node.attr)), False
        of = ast.unparse(node.value)
        inside = node.slice
        if of == "Optional":
            return self.new_kind(inside)[0], True
        if of in ("list", "List"):
            return f"[{self.new_kind(inside)[0]}]", False
        if of in ("dict", "Dict"):
            return f"{{{self.new_kind(inside.elts[1])[0]}}}", False
        if of == "Union":
            return self.new_kind(inside.elts[1])[0], False
        if of == "Literal":
            return "text", False
        raise SystemExit(f"unknown annotation {ast.unparse(node)}")


def wheel(package, version, folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
                    ":all:", "--dest", folder, f"{package}=={version}"], check=True)
    return next(pathlib.Path(folder).glob(f"{package.replace('-', '_')}-{version}-*.whl"))


def models_of(path):
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if "/models/" in n and n.endswith(".py")]
        text = lambda end: next(archive.read(n).decode() for n in names if n.endswith(end))
        if any(n.endswith("_models_py3.py") for n in names):
            return Models(text("_models_py3.py"), text("_enums.py"))
        return Models(text("_models.py"), text("_enums.py"))


def contract(package, version, api, provider, folder):
    models = models_of(wheel(package, version, folder))
    tables = {}
    for table in ["kinds", "patches", "actions"]:
        tables[table] = {k: t for k, t in provider[table].items() if t in models.classes}
    roots = sorted({t for table in tables.values() for t in table.values()})
    shapes = models.shapes(roots)
    return {"apiVersion": api, "package": f"{package} {version}", **tables,
            "types": {name: shapes[name] for name in sorted(shapes)},
            "enums": {name: models.used_enums[name] for name in sorted(models.used_enums)}}


def without(newer, older):
    """What is the same in the older contract is left out of the newer one."""
    for table in ["types", "enums"]:
        newer[table] = {n: v for n, v in newer[table].items() if older.get(n) != v}
    return newer


def generate():
    providers = []
    with tempfile.TemporaryDirectory() as folder:
        for name, package, provider in PROVIDERS:
            contracts, known = [], {}
            for api, version in provider["packages"]:
                whole = contract(package, version, api, provider, folder)
                all_of = {**whole["types"], **whole["enums"]}
                contracts.append(without(whole, known))
                known.update(all_of)
            versions = sorted({*provider["versions"].split(), *(a for a, _ in provider["packages"])})
            providers.append({"provider": name, "versions": versions, "contracts": contracts})
    source = {"generator": "schema/generate.py", "licence": "MIT, Microsoft Corporation",
              "packages": [c["package"] for p in providers for c in p["contracts"]]}
    return {"source": source, "providers": providers}


def written(value, depth=0):
    """JSON with one line a type, so that a difference can be read."""
    if not isinstance(value, dict) or depth == 6 or not value:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            pad = " " * depth
            return "[\n" + ",\n".join(pad + " " + written(v, depth + 1) for v in value) + f"\n{pad}]"
        return json.dumps(value)
    pad = " " * depth
    items = [f"{pad} {json.dumps(k)}: {written(v, depth + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(items) + f"\n{pad}}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    text = written(generate()) + "\n"
    if arguments.check:
        if TARGET.read_text() != text:
            raise SystemExit("contracts.json is not what the packages give; run generate.py")
        return
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
