import { type Permission, permissions } from '@gatehouse/contract/permission'

const known: ReadonlySet<string> = new Set(permissions)

/** Permissions are plain text in the database; one that this release does not know grants nothing. */
export function knownPermissions(names: readonly string[]): Permission[] {
  return names.filter((name): name is Permission => known.has(name))
}
