import { z } from 'zod'

/** The permissions of credentials. A credential may do only what its permissions allow. */
export const permissions = [
  'policies.read',
  'policies.write',
  'policies.publish',
  'admin_api_keys.read',
  'admin_api_keys.write',
  'members.read',
  'members.write',
  'projects.read',
  'projects.write',
  'policy_gateway.read',
  'policy_gateway.write',
  'exports.read',
  'exports.write',
  'audit.read',
  'credits.read',
  'credits.write',
  'model.invoke',
] as const

export const Permission = z.enum(permissions).meta({ id: 'Permission' })
export type Permission = z.infer<typeof Permission>

/** Administrator keys cannot call models. */
export const AdminKeyPermission = Permission.exclude(['model.invoke']).meta({
  id: 'AdminKeyPermission',
})

export const ProjectKeyPermission = Permission.extract([
  'model.invoke',
  'credits.read',
  'policy_gateway.read',
  'policy_gateway.write',
  'exports.read',
  'exports.write',
]).meta({ id: 'ProjectKeyPermission' })

/** The default permissions of a new project key; `projects.write` includes the right to grant them. */
export const defaultProjectKeyPermissions = [
  'model.invoke',
  'credits.read',
  'policy_gateway.read',
] as const satisfies readonly z.infer<typeof ProjectKeyPermission>[]
