// What container load balancers stand on: a Service Gateway, the subnet of its address, the
// default way out of Pods, and the nodes' subnet attached to it. Ballast changes none of these.
//
// az deployment group create --resource-group GROUP --template-file service-gateway.bicep \
//   --parameters virtualNetworkName=… gatewaySubnetPrefix=… gatewayAddress=… nodeSubnetName=… \
//   nodeSubnetPrefixes='["…"]' securityGroupId=… routeTableId=…
//
// Afterwards register the default way out: a template cannot call an action.
//
// az deployment group show … --query properties.outputs   gives gatewayId and egressId
// sed "s|NAT_GATEWAY_ID|$egressId|" default-egress.json > egress.json
// az rest --method post --body @egress.json \
//   --url "https://management.azure.com$gatewayId/updateServices?api-version=2025-05-01"

param location string = resourceGroup().location

@description('The virtual network of the nodes, in this resource group.')
param virtualNetworkName string

@description('Range of the subnet for the address of the Service Gateway. Nothing else is in it.')
param gatewaySubnetPrefix string

@description('An address of that range, not one of its first four: Azure keeps them.')
param gatewayAddress string

@description('The subnet of the nodes. Where it exists, repeat its ranges, group and table: a subnet is written as a whole.')
param nodeSubnetName string
param nodeSubnetPrefixes array
param securityGroupId string
param routeTableId string

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' existing = {
  name: virtualNetworkName
}

resource gatewaySubnet 'Microsoft.Network/virtualNetworks/subnets@2025-05-01' = {
  parent: network
  name: 'service-gateway'
  properties: {
    addressPrefix: gatewaySubnetPrefix
  }
}

resource gateway 'Microsoft.Network/serviceGateways@2025-05-01' = {
  name: 'servicegateway'
  location: location
  sku: {
    name: 'Standard'
    tier: 'Regional'
  }
  properties: {
    virtualNetwork: {
      id: network.id
    }
    routeTargetAddress: {
      privateIPAddress: gatewayAddress
      privateIPAllocationMethod: 'Static'
      subnet: {
        id: gatewaySubnet.id
      }
    }
  }
}

resource egressAddress 'Microsoft.Network/publicIPAddresses@2025-05-01' = {
  name: 'default-natgw-pip'
  location: location
  sku: {
    name: 'StandardV2'
  }
  properties: {
    publicIPAllocationMethod: 'Static'
    publicIPAddressVersion: 'IPv4'
  }
}

resource egress 'Microsoft.Network/natGateways@2025-05-01' = {
  name: 'default-natgw'
  location: location
  sku: {
    name: 'StandardV2'
  }
  properties: {
    serviceGateway: {
      id: gateway.id
    }
    publicIpAddresses: [
      {
        id: egressAddress.id
      }
    ]
  }
}

resource nodeSubnet 'Microsoft.Network/virtualNetworks/subnets@2025-05-01' = {
  parent: network
  name: nodeSubnetName
  properties: {
    addressPrefixes: nodeSubnetPrefixes
    networkSecurityGroup: {
      id: securityGroupId
    }
    routeTable: {
      id: routeTableId
    }
    serviceGateway: {
      id: gateway.id
    }
  }
}

output gatewayId string = gateway.id
output egressId string = egress.id
