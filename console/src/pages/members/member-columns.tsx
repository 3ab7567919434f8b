import type { Me } from '@gatehouse/contract/members/me'
import type { Member } from '@gatehouse/contract/members/member'

import { Button } from '#parts/button.tsx'
import { Chip } from '#parts/chip.tsx'
import type { Column } from '#parts/table.tsx'
import { TimeOr } from '#parts/time.tsx'
import { mayChange } from '#session/me.ts'

import { nameOfRole } from './role-names.ts'

export type MemberAction = 'role' | 'suspend' | 'reinstate' | 'remove'

const kinds = { active: 'good', invited: 'waiting', suspended: 'bad' } as const

export function memberColumns(
  me: Me,
  onOpen: (what: MemberAction, member: Member) => void,
): Column<Member>[] {
  const canWrite = mayChange(me, 'members.write')
  // Only owners change owners, and what a set manages is changed there.
  const canChange = ({ role, managed_by: set }: Member) =>
    canWrite && set === null && (role !== 'owner' || me.role === 'owner')
  return [
    {
      head: 'Member',
      isMain: true,
      cell: ({ id, name, email }) => (
        <>
          {name}
          {id === me.member?.id && <span className="muted"> (you)</span>}
          <span className="second">{email}</span>
        </>
      ),
    },
    { head: 'Role', cell: (member) => <RoleOf member={member} /> },
    {
      head: 'Status',
      cell: ({ status }) => <Chip kind={kinds[status]}>{status}</Chip>,
    },
    {
      head: 'Last seen',
      cell: ({ last_seen_at: at }) => <TimeOr at={at} none="never" />,
    },
    {
      head: 'Actions',
      isActions: true,
      cell: (member) => canChange(member) && <Actions member={member} onOpen={onOpen} />,
    },
  ]
}

/** Where the role comes from is said if a person has not given it. */
function RoleOf({ member: { role, role_source: source, managed_by: set } }: { member: Member }) {
  return (
    <>
      {nameOfRole(role)}
      {source !== 'assigned' && <span className="muted"> by the group {source}</span>}
      {set !== null && <span className="muted"> · managed by {set}</span>}
    </>
  )
}

type ActionsProps = { member: Member; onOpen: (what: MemberAction, member: Member) => void }

function Actions({ member, onOpen }: ActionsProps) {
  const name = <span className="visually-hidden"> {member.name}</span>
  const isSuspended = member.status === 'suspended'
  return (
    <>
      <Button onClick={() => onOpen('role', member)}>
        Change role<span className="visually-hidden"> of {member.name}</span>
      </Button>
      <Button onClick={() => onOpen(isSuspended ? 'reinstate' : 'suspend', member)}>
        {isSuspended ? 'Reinstate' : 'Suspend'}
        {name}
      </Button>
      <Button kind="danger" onClick={() => onOpen('remove', member)}>
        Remove{name}
      </Button>
    </>
  )
}
