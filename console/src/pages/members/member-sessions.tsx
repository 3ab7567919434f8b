import type { Member } from '@gatehouse/contract/members/member'

import { useChange } from '#api/use-change.ts'
import { Button } from '#parts/button.tsx'
import { Dialog } from '#parts/dialog.tsx'
import { Warning } from '#parts/states.tsx'
import { toast } from '#parts/toasts.tsx'

import { SessionList } from './session-list.tsx'

type MemberSessionsProps = { member: Member; canEnd: boolean; onClose: () => void }

/** Where another person is signed in. */
export function MemberSessions({ member, canEnd, onClose }: MemberSessionsProps) {
  const change = useChange(
    'DELETE /v1/organization/members/:member_id/sessions',
    [['sessions', member.id]],
    () => toast(`${member.name} is signed out everywhere within 5 seconds.`),
  )
  return (
    <Dialog title={`Sessions of ${member.name}`} onClose={onClose}>
      <SessionList memberId={member.id} canEnd={canEnd} />
      {change.error && <Warning error={change.error} />}
      <div className="foot">
        {canEnd && (
          <Button
            kind="danger"
            isBusy={change.isPending}
            onClick={() => change.mutate({ params: { member_id: member.id } })}
          >
            End all
          </Button>
        )}
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  )
}
