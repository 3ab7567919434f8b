import type { Member } from '@gatehouse/contract/members/member'

import { useChange } from '#api/use-change.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { toast } from '#parts/toasts.tsx'

import { readRole, RoleField } from './role-field.tsx'
import { nameOfRole } from './role-names.ts'

export function ChangeRole({ member, onClose }: { member: Member; onClose: () => void }) {
  const change = useChange(
    'PATCH /v1/organization/members/:member_id',
    [['members'], ['me']],
    ({ name, role }) => {
      toast(`${name} is now: ${nameOfRole(role)}.`)
      onClose()
    },
  )
  return (
    <FormDialog
      title={`Role of ${member.name}`}
      submit="Change role"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={(form) =>
        change.mutate({ params: { member_id: member.id }, body: { role: readRole(form) } })
      }
    >
      {member.role_source !== 'assigned' && (
        <p className="note">
          The role comes from {member.role_source}. A role that you give here replaces it.
        </p>
      )}
      <RoleField role={member.role} />
    </FormDialog>
  )
}
