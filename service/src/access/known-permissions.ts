import { Permission } from '@gatehouse/contract/permission'

/** Permissions are plain text in the database; one that this release does not know grants nothing. */
export function knownPermissions(names: readonly string[]): Permission[] {
  return names.flatMap((name) => Permission.safeParse(name).data ?? [])
}
