import type { Member } from '@gatehouse/contract/members/member'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useState } from 'react'

import { Button } from '#parts/button.tsx'
import { Card, Page } from '#parts/page.tsx'
import { ReadList } from '#parts/read-list.tsx'
import { Empty } from '#parts/states.tsx'
import { Table } from '#parts/table.tsx'
import { mayChange, useMe } from '#session/me.ts'

import { ChangeRole } from './change-role.tsx'
import { InviteMember } from './invite-member.tsx'
import { canStop, type MemberAction, memberColumns } from './member-columns.tsx'
import { MemberSessions } from './member-sessions.tsx'
import { NewInvitation } from './new-invitation.tsx'
import { membersQuery } from './queries.ts'
import { ReinstateMember, RemoveMember, SuspendMember } from './stop-member.tsx'

type Open = { what: 'invite' } | { what: MemberAction; member: Member } | null

/** The people of the organization. */
export function MemberList() {
  const me = useMe()
  const { email } = useSearch({ from: '/shell/members' })
  const query = useInfiniteQuery(membersQuery({ email }))
  const [open, setOpen] = useState<Open>(null)
  const canWrite = mayChange(me, 'members.write')
  const invite = canWrite && (
    <Button kind="primary" data-shortcut="n" onClick={() => setOpen({ what: 'invite' })}>
      Invite member
    </Button>
  )
  const columns = memberColumns(me, (what, member) => setOpen({ what, member }))
  return (
    <Page
      title="Members"
      sub="The people of your organization, and what each may do. Changes hold everywhere within 5 seconds."
      actions={invite}
    >
      {email !== undefined && (
        <p className="note">
          Only <span className="strong">{email}</span> is shown.{' '}
          <Link to="/members" search={{}}>
            Show all members
          </Link>
        </p>
      )}
      <Card className="list">
        <ReadList query={query} empty={<NoMembers email={email} />}>
          {(rows) => (
            <Table caption="Members" columns={columns} rows={rows} keyOf={({ id }) => id} />
          )}
        </ReadList>
      </Card>
      <Windows open={open} onClose={() => setOpen(null)} />
    </Page>
  )
}

function NoMembers({ email }: { email: string | undefined }) {
  if (email !== undefined) return <Empty title="No member has this address" />
  return (
    <Empty title="There are no members yet">
      Invite the people who administer this organization. They sign in as your operator has set it
      up.
    </Empty>
  )
}

function Windows({ open, onClose }: { open: Open; onClose: () => void }) {
  const me = useMe()
  if (open === null) return null
  if (open.what === 'invite') return <InviteMember onClose={onClose} />
  const { member } = open
  if (open.what === 'invitation') return <NewInvitation member={member} onClose={onClose} />
  if (open.what === 'sessions') {
    return <MemberSessions member={member} canEnd={canStop(me, member)} onClose={onClose} />
  }
  if (open.what === 'role') return <ChangeRole member={member} onClose={onClose} />
  if (open.what === 'suspend') return <SuspendMember member={member} onClose={onClose} />
  if (open.what === 'reinstate') return <ReinstateMember member={member} onClose={onClose} />
  return <RemoveMember member={member} onClose={onClose} />
}
