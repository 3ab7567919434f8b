import type { Member } from '@gatehouse/contract/members/member'
import { useState } from 'react'

import type { Answer } from '#api/operations.ts'
import { useChange } from '#api/use-change.ts'
import { FormDialog } from '#parts/dialog.tsx'

import { InvitationLink } from './invitation-link.tsx'

type Made = Answer<'POST /v1/organization/members/:member_id/invitation'>

/** A further link for a person who has lost the first one, or came too late. */
export function NewInvitation({ member, onClose }: { member: Member; onClose: () => void }) {
  const [made, setMade] = useState<Made | null>(null)
  const change = useChange(
    'POST /v1/organization/members/:member_id/invitation',
    [['members']],
    setMade,
  )
  if (made) return <InvitationLink email={member.email} invitation={made} onClose={onClose} />
  return (
    <FormDialog
      title={`New link for ${member.email}?`}
      submit="Make link"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={() => change.mutate({ params: { member_id: member.id } })}
    >
      <p>The link that the person has got before stops working.</p>
    </FormDialog>
  )
}
