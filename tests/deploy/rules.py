"""Access rules, compared with the calls that were made: one-word atoms on both sides."""

# What every caller may ask, by the cluster's own bindings (system:discovery, system:public-info-
# viewer): https://kubernetes.io/docs/reference/access-authn-authz/rbac/#discovery-roles
FREE_PATHS = {"/version", "/healthz", "/livez", "/readyz", "/api", "/apis"}


def granted(objects, account):
    """Atoms (verb, group, resource, namespace or *, name or *) that the bindings give an account."""
    roles = {}
    for one in objects:
        if one["kind"] in ("Role", "ClusterRole"):
            place = one["metadata"].get("namespace", "")
            roles[(one["kind"], place, one["metadata"]["name"])] = one["rules"]
    atoms = set()
    for one in objects:
        if one["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        space = one["metadata"].get("namespace", "*")
        meant = [s for s in one["subjects"] if (s["kind"], s["namespace"], s["name"]) == account]
        if not meant:
            raise AssertionError(f"{one['kind']} {one['metadata']['name']} is for somebody else")
        reference = one["roleRef"]
        place = "" if reference["kind"] == "ClusterRole" else space
        for rule in roles.pop((reference["kind"], place, reference["name"])):
            for verb in rule["verbs"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for name in rule.get("resourceNames", ["*"]):
                            atom = (verb, group, resource, space, name)
                            if "*" in (verb, group, resource):
                                raise AssertionError(f"too much is granted: {atom}")
                            if atom in atoms:
                                raise AssertionError(f"granted twice: {atom}")
                            atoms.add(atom)
    if roles:
        raise AssertionError(f"bound to nobody: {sorted(roles)}")
    return atoms


def allows(atom, call):
    verb, group, resource, space, name = atom
    return (
        (verb, group, resource) == (call["verb"], call["group"], call["resource"])
        and space in ("*", call["namespace"])
        and name in ("*", call["name"])
    )


def compare(atoms, calls):
    """Fails for a call that no atom allows, and for an atom that no call needs."""
    missing = set()
    used = set()
    for call in calls:
        if not call["resource"]:
            if call["path"] not in FREE_PATHS:
                missing.add(("get", call["path"]))
            continue
        found = [atom for atom in atoms if allows(atom, call)]
        used.update(found)
        if not found:
            missing.add(tuple(call[key] for key in ("verb", "group", "resource", "namespace", "name")))
    if missing:
        raise AssertionError(f"made, but not granted: {sorted(missing)}")
    if atoms - used:
        raise AssertionError(f"granted, but never needed: {sorted(atoms - used)}")
    return len(atoms)
