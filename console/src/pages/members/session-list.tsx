import type { MemberSession } from '@gatehouse/contract/members/session'
import { useQuery } from '@tanstack/react-query'

import { useChange } from '#api/use-change.ts'
import { Button } from '#parts/button.tsx'
import { Read } from '#parts/read.tsx'
import { Warning } from '#parts/states.tsx'
import { type Column, Table } from '#parts/table.tsx'
import { Time } from '#parts/time.tsx'
import { toast } from '#parts/toasts.tsx'

import { sessionsQuery } from './queries.ts'

type SessionListProps = { memberId: string; canEnd: boolean }

/** Where a member is signed in, and the end of each of these sessions. */
export function SessionList({ memberId, canEnd }: SessionListProps) {
  const query = useQuery(sessionsQuery(memberId))
  const change = useChange(
    'DELETE /v1/organization/members/:member_id/sessions/:session_id',
    [['sessions', memberId]],
    () => toast('The session has ended.'),
  )
  const end = ({ id }: MemberSession) =>
    change.mutate({ params: { member_id: memberId, session_id: id } })
  return (
    <>
      {change.error && <Warning error={change.error} />}
      <Read query={query}>
        {({ data }) =>
          data.length === 0 ? (
            <p className="muted">Signed in nowhere.</p>
          ) : (
            <Table
              caption="Sessions"
              columns={columnsOf(canEnd ? end : null)}
              rows={data}
              keyOf={({ id }) => id}
            />
          )
        }
      </Read>
    </>
  )
}

function columnsOf(onEnd: ((session: MemberSession) => void) | null): Column<MemberSession>[] {
  return [
    {
      head: 'Session',
      isMain: true,
      cell: ({ form, method, is_current: isCurrent }) => (
        <>
          {form === 'browser' ? 'Browser' : 'Program'}
          {isCurrent && <span className="muted"> (this one)</span>}
          <span className="second">signed in with {method}</span>
        </>
      ),
    },
    { head: 'Since', cell: ({ created_at: at }) => <Time at={at} /> },
    { head: 'Last seen', cell: ({ last_seen_at: at }) => <Time at={at} /> },
    {
      head: 'Actions',
      isActions: true,
      // This browser signs out by its own button, which also forgets the cookie.
      cell: (session) =>
        onEnd && !session.is_current && <Button onClick={() => onEnd(session)}>End</Button>,
    },
  ]
}
