import type { Permission } from '@gatehouse/contract/permission'

/** What a permission allows, in the order of the table. */
export const permissionWords: Readonly<Record<Permission, string>> = {
  'policies.read': 'Read policies',
  'policies.write': 'Write and try policies',
  'policies.publish': 'Publish policies',
  'policy_gateway.read': 'Read the policy gateway',
  'policy_gateway.write': 'Change the policy gateway',
  'projects.read': 'Read projects and their keys',
  'projects.write': 'Change projects and their keys',
  'members.read': 'Read members and roles',
  'members.write': 'Change members and roles',
  'admin_api_keys.read': 'Read administrator keys',
  'admin_api_keys.write': 'Change administrator keys and settings',
  'credits.read': 'Read credits, usage and ledger',
  'credits.write': 'Manage credits',
  'exports.read': 'Read export sinks',
  'exports.write': 'Change export sinks',
  'audit.read': 'Read the audit log',
  'model.invoke': 'Call models',
}

export const permissionNames = Object.keys(permissionWords) as Permission[]
