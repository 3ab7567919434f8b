import { z } from 'zod'

/** What a credential may be allowed to do (G2.28). Nothing is allowed unless it is listed. */
export const permissions = [
  'policies.read',
  'policies.write',
  'policies.publish',
  'admin_api_keys.read',
  'admin_api_keys.write',
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

/** Administrator keys manage; they never call a model. */
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

/** What a new project key gets; `projects.write` includes granting these (G5.8). */
export const defaultProjectKeyPermissions = [
  'model.invoke',
  'credits.read',
  'policy_gateway.read',
] as const satisfies readonly z.infer<typeof ProjectKeyPermission>[]
