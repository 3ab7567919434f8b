import type { Role } from '@gatehouse/contract/role'

/** The name of a role as a person reads it: policy_editor is "Policy editor". */
export const nameOfRole = (role: Role): string => {
  const words = role.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
