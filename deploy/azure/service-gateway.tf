# What container load balancers stand on: a Service Gateway, the subnet of its address, the default
# way out of Pods, and the nodes' subnet attached to it. Ballast changes none of these.
#
# The provider azapi sends bodies as they are: azurerm knows no Service Gateway.

terraform {
  required_providers {
    azapi = {
      source = "Azure/azapi"
    }
  }
}

variable "location" {
  type = string
}

variable "resource_group_id" {
  type = string
}

variable "virtual_network_id" {
  description = "The virtual network of the nodes."
  type        = string
}

variable "gateway_subnet_prefix" {
  description = "Range of the subnet for the address of the Service Gateway. Nothing else is in it."
  type        = string
}

variable "gateway_address" {
  description = "An address of that range, not one of its first four: Azure keeps them."
  type        = string
}

variable "node_subnet_name" {
  description = "The subnet of the nodes. Where it exists, import it, and repeat its ranges, group and table: a subnet is written as a whole."
  type        = string
}

variable "node_subnet_prefixes" {
  type = list(string)
}

variable "security_group_id" {
  type = string
}

variable "route_table_id" {
  type = string
}

resource "azapi_resource" "gateway_subnet" {
  type      = "Microsoft.Network/virtualNetworks/subnets@2025-05-01"
  parent_id = var.virtual_network_id
  name      = "service-gateway"
  body = {
    properties = {
      addressPrefix = var.gateway_subnet_prefix
    }
  }
}

resource "azapi_resource" "gateway" {
  type      = "Microsoft.Network/serviceGateways@2025-05-01"
  parent_id = var.resource_group_id
  name      = "servicegateway"
  location  = var.location
  body = {
    sku = {
      name = "Standard"
      tier = "Regional"
    }
    properties = {
      virtualNetwork = {
        id = var.virtual_network_id
      }
      routeTargetAddress = {
        privateIPAddress          = var.gateway_address
        privateIPAllocationMethod = "Static"
        subnet = {
          id = azapi_resource.gateway_subnet.id
        }
      }
    }
  }
}

resource "azapi_resource" "egress_address" {
  type      = "Microsoft.Network/publicIPAddresses@2025-05-01"
  parent_id = var.resource_group_id
  name      = "default-natgw-pip"
  location  = var.location
  body = {
    sku = {
      name = "StandardV2"
    }
    properties = {
      publicIPAllocationMethod = "Static"
      publicIPAddressVersion   = "IPv4"
    }
  }
}

resource "azapi_resource" "egress" {
  type      = "Microsoft.Network/natGateways@2025-05-01"
  parent_id = var.resource_group_id
  name      = "default-natgw"
  location  = var.location
  body = {
    sku = {
      name = "StandardV2"
    }
    properties = {
      serviceGateway = {
        id = azapi_resource.gateway.id
      }
      publicIpAddresses = [
        {
          id = azapi_resource.egress_address.id
        }
      ]
    }
  }
}

resource "azapi_resource" "node_subnet" {
  type      = "Microsoft.Network/virtualNetworks/subnets@2025-05-01"
  parent_id = var.virtual_network_id
  name      = var.node_subnet_name
  body = {
    properties = {
      addressPrefixes = var.node_subnet_prefixes
      networkSecurityGroup = {
        id = var.security_group_id
      }
      routeTable = {
        id = var.route_table_id
      }
      serviceGateway = {
        id = azapi_resource.gateway.id
      }
    }
  }
}

# A template describes what is there; that the NAT gateway is the default way out is an action.
resource "azapi_resource_action" "default_egress" {
  type        = "Microsoft.Network/serviceGateways@2025-05-01"
  resource_id = azapi_resource.gateway.id
  action      = "updateServices"
  method      = "POST"
  body        = jsondecode(replace(file("${path.module}/default-egress.json"), "NAT_GATEWAY_ID", azapi_resource.egress.id))
}
