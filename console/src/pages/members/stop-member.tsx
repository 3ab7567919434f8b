import type { Member } from '@gatehouse/contract/members/member'

import { useChange } from '#api/use-change.ts'
import { Confirm } from '#parts/confirm.tsx'
import { FormDialog } from '#parts/dialog.tsx'
import { toast } from '#parts/toasts.tsx'

type StopProps = { member: Member; onClose: () => void }

function useStatus({ member, onClose }: StopProps, done: string) {
  return useChange('PATCH /v1/organization/members/:member_id', [['members']], () => {
    toast(`${member.name} ${done}.`)
    onClose()
  })
}

export function SuspendMember(props: StopProps) {
  const { member, onClose } = props
  const change = useStatus(props, 'is suspended')
  return (
    <Confirm
      title={`Suspend ${member.name}?`}
      submit="Suspend"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() =>
        change.mutate({ params: { member_id: member.id }, body: { status: 'suspended' } })
      }
    >
      <p>
        All sessions of this person end within 5 seconds, and signing in is refused. The keys that
        the person made for themself are refused too, until the suspension ends.
      </p>
    </Confirm>
  )
}

export function ReinstateMember(props: StopProps) {
  const { member, onClose } = props
  const change = useStatus(props, 'can sign in again')
  return (
    <FormDialog
      title={`Reinstate ${member.name}?`}
      submit="Reinstate"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={() =>
        change.mutate({ params: { member_id: member.id }, body: { status: 'active' } })
      }
    >
      <p>The person can sign in again with the same role, and own keys work again.</p>
    </FormDialog>
  )
}

export function RemoveMember({ member, onClose }: StopProps) {
  const change = useChange('DELETE /v1/organization/members/:member_id', [['members']], () => {
    toast(`${member.name} is no longer a member.`)
    onClose()
  })
  return (
    <Confirm
      title={`Remove ${member.name}?`}
      submit="Remove member"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() => change.mutate({ params: { member_id: member.id } })}
    >
      <p>
        The sessions of this person end within 5 seconds. Memberships of projects are gone, and the
        keys that the person made for themself are revoked for good.
      </p>
      <p>The address can be invited again, as a new member.</p>
    </Confirm>
  )
}
