import { useState } from 'react'

import type { Answer } from '#api/operations.ts'
import { useChange } from '#api/use-change.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Field, textOf } from '#parts/field.tsx'

import { InvitationLink } from './invitation-link.tsx'
import { readRole, RoleField } from './role-field.tsx'

type Invited = Answer<'POST /v1/organization/members'>

/** Asks for the person, then shows the link that the person needs. */
export function InviteMember({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<Invited | null>(null)
  const change = useChange('POST /v1/organization/members', [['members']], setMade)
  if (made) return <InvitationLink email={made.email} invitation={made} onClose={onClose} />
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
        hint="The person signs in with this address. It cannot be changed later."
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
