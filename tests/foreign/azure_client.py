#!/usr/bin/env python3
"""Drives a running azure-emulator with Microsoft's own SDK, which knows nothing of us.

    pip install azure-mgmt-network azure-mgmt-compute
    cargo run -p azure-emulator --example serve_azure -- --port 8999 --sample 3 --service-gateway
    azure_client.py --endpoint http://127.0.0.1:8999

Exits non-zero, with the assertion that failed, if the emulator does not behave like Azure.
The emulator must hold its sample estate and nothing else; its options are set from here.
"""
import argparse
import json
import time
import urllib.request

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
RG = "rg"
NET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{RG}/providers/Microsoft.Network"


class FakeCredential:
    """The SDK wants one; the emulator asks for none."""

    def get_token(self, *scopes, **kwargs):
        raise AssertionError("no token is needed on loopback")


class NoSignIn(SansIOHTTPPolicy):
    """Stands in for the bearer token policy, which refuses plain HTTP."""


def admin(endpoint, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(endpoint + "/_/" + path, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def plain(model):
    """A model as the JSON that came over the wire."""
    return json.loads(json.dumps(model.as_dict()))


def refused(code, call, status=None):
    try:
        call()
    except HttpResponseError as error:
        got = error.error.code if error.error else None
        assert got == code, f"expected {code}, got {got}: {error}"
        assert status in (None, error.status_code), f"{code}: status {error.status_code}"
        return error
    raise AssertionError(f"expected {code}, but the call went through")


def deep(value, *path):
    """Looks a field up in JSON, with or without the SDK's flattening and renaming."""
    for key in path:
        if isinstance(value, list):
            value = value[key]
        elif isinstance(key, str):
            inner = value.get("properties") or {}
            snake = "".join("_" + c.lower() if c.isupper() else c for c in key)
            for place in (value, inner):
                for name in (key, snake, snake.replace("i_p", "ip"), key.lower()):
                    if name in place:
                        break
                else:
                    continue
                value = place[name]
                break
            else:
                raise AssertionError(f"no {key} in {json.dumps(value)[:400]}")
        else:
            value = value[key]
    return value


def ip_body(version="IPv4", sku="Standard", **more):
    return {"location": "eastus", "sku": {"name": sku},
            "properties": {"publicIPAddressVersion": version, "publicIPAllocationMethod": "Static", **more}}


def lb_body(pip, rules=1):
    lb = f"{NET}/loadBalancers/lb"
    return {"location": "eastus", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "front", "properties": {"publicIPAddress": {"id": pip}}}],
        "backendAddressPools": [{"name": "pool"}],
        "probes": [{"name": "probe", "properties": {"protocol": "Tcp", "port": 30080, "intervalInSeconds": 5}}],
        "loadBalancingRules": [{"name": f"r{n}", "properties": {
            "protocol": "Tcp", "frontendPort": 80 + n, "backendPort": 80 + n, "enableFloatingIP": True,
            "frontendIPConfiguration": {"id": lb + "/frontendIPConfigurations/front"},
            "backendAddressPool": {"id": lb + "/backendAddressPools/pool"},
            "probe": {"id": lb + "/probes/probe"}}} for n in range(rules)]}}


def public_ips(net):
    made = net.public_ip_addresses.begin_create_or_update(RG, "pip", ip_body()).result()
    made = plain(made)
    address = deep(made, "ipAddress")
    assert address.startswith("20.0."), address
    six = plain(net.public_ip_addresses.begin_create_or_update(RG, "pip6", ip_body("IPv6")).result())
    assert deep(six, "ipAddress").startswith("2603:1000::")
    tagged = plain(net.public_ip_addresses.update_tags(RG, "pip", {"tags": {"a": "b"}}))
    assert tagged["tags"] == {"a": "b"}, tagged
    assert deep(tagged, "ipAddress") == address
    names = {p.name for p in net.public_ip_addresses.list(RG)}
    assert {"pip", "pip6"} <= names, names
    assert names == {p.name for p in net.public_ip_addresses.list_all()}
    net.public_ip_addresses.begin_delete(RG, "pip6").result()
    try:
        net.public_ip_addresses.get(RG, "pip6")
        raise AssertionError("pip6 is still there")
    except ResourceNotFoundError as error:
        assert error.error.code == "ResourceNotFound", error
    return made["id"]


def load_balancers(net, pip):
    net.load_balancers.begin_create_or_update(RG, "lb", lb_body(pip, 2)).result()
    lb = plain(net.load_balancers.get(RG, "lb"))
    assert deep(lb, "provisioningState") == "Succeeded"
    assert len(deep(lb, "loadBalancingRules")) == 2
    assert [r.name for r in net.load_balancer_load_balancing_rules.list(RG, "lb")] == ["r0", "r1"]
    assert net.load_balancer_probes.get(RG, "lb", "probe").name == "probe"
    front = plain(net.load_balancer_frontend_ip_configurations.get(RG, "lb", "front"))
    assert front["id"].endswith("/frontendIPConfigurations/front"), front
    assert plain(net.public_ip_addresses.get(RG, "pip"))["properties"]["ipConfiguration"]["id"] == front["id"]
    refused("PublicIPAddressCannotBeDeleted",
            lambda: net.public_ip_addresses.begin_delete(RG, "pip").result(), 400)

    pool = {"properties": {"virtualNetwork": {"id": NET + "/virtualNetworks/vnet"},
            "loadBalancerBackendAddresses": [{"name": "n0", "properties": {"ipAddress": "10.224.0.4"}}]}}
    pools = net.load_balancer_backend_address_pools
    pools.begin_create_or_update(RG, "lb", "pool", pool).result()
    shown = plain(pools.get(RG, "lb", "pool"))
    assert deep(shown, "loadBalancerBackendAddresses", 0, "ipAddress") == "10.224.0.4", shown
    pools.begin_create_or_update(RG, "lb", "extra", {"properties": {}}).result()
    assert {p.name for p in pools.list(RG, "lb")} == {"pool", "extra"}
    pools.begin_delete(RG, "lb", "extra").result()
    assert {p.name for p in pools.list(RG, "lb")} == {"pool"}

    after = plain(net.load_balancers.get(RG, "lb"))
    assert after["etag"] != lb["etag"], "a pool write changes the ETag of its load balancer"
    stale = lambda: net.load_balancers.begin_create_or_update(
        RG, "lb", lb_body(pip), headers={"If-Match": lb["etag"]}).result()
    refused("PreconditionFailed", stale, 412)
    net.load_balancers.begin_create_or_update(RG, "lb", after, headers={"If-Match": after["etag"]}).result()
    assert deep(plain(net.load_balancers.get(RG, "lb")), "loadBalancingRules") != []
    bad = lb_body(pip)
    bad["properties"]["loadBalancingRules"] *= 2
    twice = lambda: net.load_balancers.begin_create_or_update(RG, "lb", bad).result()
    error = refused("InvalidRequestFormat", twice, 400)
    assert [detail.code for detail in error.error.details] == ["DuplicateResourceName"], error
    gone = lb_body(pip + "none")
    refused("InvalidResourceReference",
            lambda: net.load_balancers.begin_create_or_update(RG, "lb", gone).result(), 400)
    missing = lambda: net.load_balancers.begin_create_or_update("none", "lb", lb_body(pip)).result()
    refused("ResourceGroupNotFound", missing, 404)


def security_groups(net):
    rule = lambda name, priority: {"name": name, "properties": {
        "access": "Allow", "direction": "Inbound", "protocol": "Tcp", "priority": priority,
        "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
        "destinationAddressPrefix": "20.0.0.1", "destinationPortRanges": ["80", "443"]}}
    body = {"location": "eastus", "properties": {"securityRules": [rule("a", 500)]}}
    groups = net.network_security_groups
    shown = plain(groups.begin_create_or_update(RG, "other", body).result())
    assert len(deep(shown, "defaultSecurityRules")) == 6
    net.security_rules.begin_create_or_update(RG, "other", "b", rule("b", 501)).result()
    assert [r.name for r in net.security_rules.list(RG, "other")] == ["a", "b"]
    refused("SecurityRuleConflict",
            lambda: net.security_rules.begin_create_or_update(RG, "other", "c", rule("c", 501)).result(), 400)
    net.security_rules.begin_delete(RG, "other", "b").result()
    groups.begin_delete(RG, "other").result()
    assert [g.name for g in groups.list(RG)] == ["nsg"]


def networks(net):
    body = {"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "one", "properties": {"addressPrefix": "10.0.1.0/24"}}]}}
    shown = plain(net.virtual_networks.begin_create_or_update(RG, "net", body).result())
    assert [s["name"] for s in deep(shown, "subnets")] == ["one"]
    two = {"properties": {"addressPrefix": "10.0.2.0/24"}}
    net.subnets.begin_create_or_update(RG, "net", "two", two).result()
    assert {s.name for s in net.subnets.list(RG, "net")} == {"one", "two"}
    overlap = {"properties": {"addressPrefix": "10.0.2.0/25"}}
    refused("NetcfgSubnetRangesOverlap",
            lambda: net.subnets.begin_create_or_update(RG, "net", "three", overlap).result(), 400)
    net.subnets.begin_delete(RG, "net", "two").result()
    net.virtual_networks.begin_delete(RG, "net").result()
    assert {v.name for v in net.virtual_networks.list(RG)} == {"vnet"}
    return plain(net.subnets.get(RG, "vnet", "apps"))


def private_links(net, subnet):
    front = {"name": "in", "properties": {"subnet": {"id": NET + "/virtualNetworks/vnet/subnets/nodes"}}}
    body = {"location": "eastus", "sku": {"name": "Standard"}, "properties": {"frontendIPConfigurations": [front]}}
    inner = plain(net.load_balancers.begin_create_or_update(RG, "inner", body).result())
    assert deep(inner, "frontendIPConfigurations", 0, "privateIPAddress") == "10.224.100.5", inner
    pls = {"location": "eastus", "properties": {
        "loadBalancerFrontendIpConfigurations": [{"id": NET + "/loadBalancers/inner/frontendIPConfigurations/in"}],
        "ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": subnet["id"]}}}]}}
    make = lambda: net.private_link_services.begin_create_or_update(RG, "pls", pls).result()
    refused("PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled", make, 400)
    subnet["properties"]["privateLinkServiceNetworkPolicies"] = "Disabled"
    net.subnets.begin_create_or_update(RG, "vnet", "apps", subnet).result()
    shown = plain(make())
    assert deep(shown, "alias").endswith(".azure.privatelinkservice"), shown
    assert [p.name for p in net.private_link_services.list(RG)] == ["pls"]
    refused("InUseFrontendIPConfigurationCannotBeDeleted",
            lambda: net.load_balancers.begin_delete(RG, "inner").result(), 400)
    net.private_link_services.begin_delete(RG, "pls").result()
    net.load_balancers.begin_delete(RG, "inner").result()


def nat_gateways(net):
    pip = plain(net.public_ip_addresses.begin_create_or_update(RG, "v2", ip_body(sku="StandardV2")).result())
    body = {"location": "eastus", "sku": {"name": "StandardV2"}, "properties": {"publicIpAddresses": [{"id": pip["id"]}]}}
    net.nat_gateways.begin_create_or_update(RG, "nat", body).result()
    shown = plain(net.public_ip_addresses.get(RG, "v2"))
    assert deep(shown, "natGateway", "id") == NET + "/natGateways/nat", shown
    assert {n.name for n in net.nat_gateways.list(RG)} == {"nat", "default-natgw"}
    net.nat_gateways.begin_delete(RG, "nat").result()
    net.public_ip_addresses.begin_delete(RG, "v2").result()


def service_gateways(net):
    if not hasattr(net, "service_gateways"):
        print("  this SDK has no service gateways: left out")
        return
    gateways = net.service_gateways
    name = "servicegateway"
    shown = list(gateways.get_services(RG, name))
    assert [s.name for s in shown] == ["default-natgw"], shown
    register = {"action": "PartialUpdate", "serviceRequests": [{"isDelete": False, "service": {
        "name": "uid", "properties": {"serviceType": "Inbound", "loadBalancerBackendPools": []}}}]}
    done = lambda call: call.result() if hasattr(call, "result") else call
    act = lambda what, body: done(getattr(
        gateways, what if hasattr(gateways, what) else "begin_" + what)(RG, name, body))
    act("update_services", register)
    where = lambda services: {"action": "PartialUpdate", "addressLocations": [{
        "addressLocation": "10.224.0.4", "addressUpdateAction": "PartialUpdate",
        "addresses": [{"address": "10.244.0.7", "services": services}]}]}
    act("update_address_locations", where(["uid"]))
    table = [plain(x) for x in gateways.get_address_locations(RG, name)]
    assert deep(table, 0, "addresses", 0, "address") == "10.244.0.7", table
    register["serviceRequests"][0]["isDelete"] = True
    refused("ServiceWithOverlayMappingsCannotBeDeleted", lambda: act("update_services", register), 400)
    act("update_address_locations", where([]))
    act("update_services", register)
    assert [s.name for s in gateways.get_services(RG, name)] == ["default-natgw"]


def machines(compute, net, count):
    sets = list(compute.virtual_machine_scale_sets.list(RG))
    assert [s.name for s in sets] == ["vmss"], sets
    vms = list(compute.virtual_machine_scale_set_vms.list(RG, "vmss", expand="instanceView"))
    assert len(vms) == count, len(vms)
    first = plain(vms[0])
    assert deep(first, "osProfile", "computerName") == "vmss000000", first
    nics = list(net.network_interfaces.list_virtual_machine_scale_set_network_interfaces(RG, "vmss"))
    assert len(nics) == count, len(nics)
    vm = plain(compute.virtual_machine_scale_set_vms.get(RG, "vmss", "0"))
    nic = deep(vm, "networkProfileConfiguration", "networkInterfaceConfigurations", 0)
    pool = {"id": NET + "/loadBalancers/lb/backendAddressPools/nics"}
    pools = net.load_balancer_backend_address_pools
    pools.begin_create_or_update(RG, "lb", "nics", {"properties": {}}).result()
    nic["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] = [pool]
    compute.virtual_machine_scale_set_vms.begin_update(RG, "vmss", "0", vm).result()
    shown = plain(pools.get(RG, "lb", "nics"))
    members = deep(shown, "backendIPConfigurations")
    assert len(members) == 1 and "/virtualMachines/0/networkInterfaces/" in members[0]["id"], members
    assert list(compute.virtual_machines.list(RG)) == []
    assert list(compute.availability_sets.list(RG)) == []


def paging(endpoint, net):
    for n in range(7):
        net.public_ip_addresses.begin_create_or_update(RG, f"page{n}", ip_body()).result()
    admin(endpoint, "options", {"page_size": 3})
    before = len(admin(endpoint, "calls"))
    names = {p.name for p in net.public_ip_addresses.list(RG) if p.name.startswith("page")}
    assert names == {f"page{n}" for n in range(7)}, names
    assert len(admin(endpoint, "calls")) - before >= 3, "the list came in pages"
    admin(endpoint, "options", {"page_size": 0})
    for n in range(7):
        net.public_ip_addresses.begin_delete(RG, f"page{n}").result()


def operations(endpoint, net):
    """Pollers of the SDK against operations that take their time, and against failing ones."""
    admin(endpoint, "options", {"lro_ms": 300, "retry_after_s": 0, "late_public_ip_address": "on"})
    started = time.monotonic()
    poller = net.public_ip_addresses.begin_create_or_update(RG, "slow", ip_body())
    assert not poller.done()
    again = lambda: net.public_ip_addresses.begin_create_or_update(RG, "slow", ip_body()).result()
    refused("AnotherOperationInProgress", again, 409)
    shown = plain(poller.result())
    assert time.monotonic() - started >= 0.3
    assert deep(shown, "provisioningState") == "Succeeded" and deep(shown, "ipAddress")
    admin(endpoint, "fail", [{"kind": "operation_fails", "code": "Boom", "method": "PUT"}])
    refused("Boom", again)
    admin(endpoint, "fail", [])
    again()
    net.public_ip_addresses.begin_delete(RG, "slow").result()
    assert "slow" not in {p.name for p in net.public_ip_addresses.list(RG)}
    admin(endpoint, "options", {"lro_ms": 0, "late_public_ip_address": "off"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--machines", type=int, default=3, help="how many the sample was started with")
    args = parser.parse_args()
    endpoint = args.endpoint.rstrip("/")
    common = {"base_url": endpoint, "credential_scopes": [endpoint], "authentication_policy": NoSignIn(),
              "polling_interval": 0.05, "retry_total": 0}
    net = NetworkManagementClient(FakeCredential(), SUBSCRIPTION, **common)
    compute = ComputeManagementClient(FakeCredential(), SUBSCRIPTION, **common)
    found = {}
    plan = [
        ("public IPs", lambda: found.__setitem__("pip", public_ips(net))),
        ("load balancers", lambda: load_balancers(net, found["pip"])),
        ("security groups", lambda: security_groups(net)),
        ("networks", lambda: found.__setitem__("apps", networks(net))),
        ("private links", lambda: private_links(net, found["apps"])),
        ("NAT gateways", lambda: nat_gateways(net)),
        ("service gateways", lambda: service_gateways(net)),
        ("machines", lambda: machines(compute, net, args.machines)),
        ("paging", lambda: paging(endpoint, net)),
        ("operations", lambda: operations(endpoint, net)),
    ]
    for name, step in plan:
        step()
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
