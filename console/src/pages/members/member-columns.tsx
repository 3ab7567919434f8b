import type { Me } from '@gatehouse/contract/members/me'
import type { Member } from '@gatehouse/contract/members/member'

import { Button } from '#parts/button.tsx'
import { Chip } from '#parts/chip.tsx'
import type { Column } from '#parts/table.tsx'
import { TimeOr } from '#parts/time.tsx'
import { mayChange } from '#session/me.ts'

import { nameOfRole } from './role-names.ts'

export type MemberAction = 'role' | 'invitation' | 'sessions' | 'suspend' | 'reinstate' | 'remove'

/** Only owners stop owners and end their sessions. */
export const canStop = (me: Me, { role }: Member) =>
  mayChange(me, 'members.write') && (role !== 'owner' || me.role === 'owner')

const kinds = { active: 'good', invited: 'waiting', suspended: 'bad' } as const

export function memberColumns(
  me: Me,
  onOpen: (what: MemberAction, member: Member) => void,
): Column<Member>[] {
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
      cell: (member) => <Actions me={me} member={member} onOpen={onOpen} />,
    },
  ]
}

/** Where the role comes from is said if a person has not given it. */
function RoleOf({ member: { role, role_source: source, managed_by: set } }: { member: Member }) {
  return (
    <>
      {nameOfRole(role)}
      {source !== 'assigned' && <span className="muted"> by {source}</span>}
      {set !== null && <span className="muted"> · managed by {set}</span>}
    </>
  )
}

type ActionsProps = {
  me: Me
  member: Member
  onOpen: (what: MemberAction, member: Member) => void
}

const labels: Record<MemberAction, string> = {
  role: 'Change role',
  invitation: 'New link',
  sessions: 'Sessions',
  suspend: 'Suspend',
  reinstate: 'Reinstate',
  remove: 'Remove',
}

function actionsOf(me: Me, member: Member): MemberAction[] {
  const { status, managed_by: set } = member
  const sessions: MemberAction[] = status === 'active' ? ['sessions'] : []
  // What a set manages is changed there.
  if (!canStop(me, member) || set !== null) return sessions
  if (status === 'invited') return ['role', 'invitation', 'suspend', 'remove']
  return ['role', ...sessions, status === 'suspended' ? 'reinstate' : 'suspend', 'remove']
}

function Actions({ me, member, onOpen }: ActionsProps) {
  return actionsOf(me, member).map((action) => (
    <Button
      key={action}
      kind={action === 'remove' ? 'danger' : 'plain'}
      onClick={() => onOpen(action, member)}
    >
      {labels[action]}
      <span className="visually-hidden">
        {action === 'role' ? ' of' : ''} {member.name}
      </span>
    </Button>
  ))
}
