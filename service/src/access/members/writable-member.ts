import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import type { Announce } from '#audit/announce.ts'
import type { Tx } from '#platform/database.ts'

import { requireMember } from './change-member.ts'
import { presentMember } from './present-member.ts'

/** Refuses a change of a member that another set manages, or takes the member over. The caller has locked the members. */
export async function requireWritableMember(
  tx: Tx,
  deps: { announce: Announce },
  caller: WritingCaller,
  id: string,
) {
  const member = await requireMember(tx, caller.principal.organizationId, id)
  await requireWritable(tx, deps, caller, {
    table: 'member',
    id,
    managedBy: member.managed_by,
    present: (set) => presentMember({ ...member, managed_by: set }),
  })
}
