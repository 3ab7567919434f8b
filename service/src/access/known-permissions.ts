import { type Permission, permissions } from '@gatehouse/contract/permission'

const known: ReadonlySet<string> = new Set(permissions)

/** Drops permissions that this release does not know: the database may hold those of a newer one. */
export function knownPermissions(names: readonly string[]): Permission[] {
  return names.filter((name): name is Permission => known.has(name))
}
