import { useChange } from '#api/use-change.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Field, textOf } from '#parts/field.tsx'
import { toast } from '#parts/toasts.tsx'

import { readRole, RoleField } from './role-field.tsx'

export function InviteMember({ onClose }: { onClose: () => void }) {
  const change = useChange('POST /v1/organization/members', [['members']], ({ email }) => {
    toast(`${email} is invited, and can sign in now.`)
    onClose()
  })
  const onSubmit = (form: FormData) => {
    const name = textOf(form, 'name')
    const body = { email: textOf(form, 'email'), role: readRole(form), ...(name && { name }) }
    change.mutate({ body })
  }
  return (
    <FormDialog
      title="Invite a member"
      submit="Invite member"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={onSubmit}
    >
      <Field
        label="Email address"
        hint="The person signs in with this address. It cannot be changed later. No mail is sent."
      >
        {(ids) => (
          <input {...ids} name="email" type="email" required maxLength={254} autoComplete="off" />
        )}
      </Field>
      <Field label="Name" hint="Empty: what is before the @.">
        {(ids) => <input {...ids} name="name" maxLength={80} autoComplete="off" />}
      </Field>
      <RoleField role="viewer" />
    </FormDialog>
  )
}
