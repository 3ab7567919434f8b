import type { Permission } from '@gatehouse/contract/permission'
import { useState } from 'react'

import type { Answer, Input } from '#api/operations.ts'
import { useChange } from '#api/use-change.ts'
import { ExpiryField, readExpiry } from '#pages/projects/keys/expiry-field.tsx'
import { NewSecret } from '#pages/projects/keys/new-secret.tsx'
import { permissionNames, permissionWords } from '#pages/roles/permission-words.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Check, Field, textOf } from '#parts/field.tsx'
import { useMe } from '#session/me.ts'

type NewKey = Answer<'POST /v1/organization/admin_api_keys'>
type Granted = Input<'POST /v1/organization/admin_api_keys'>['body']['permissions']

export function CreateAdminKey({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<NewKey | null>(null)
  if (made) {
    return <NewSecret name={made.name} secret={made.value} hasSnippets={false} onClose={onClose} />
  }
  return <AdminKeyForm onClose={onClose} onMade={setMade} />
}

type FormProps = { onClose: () => void; onMade: (key: NewKey) => void }

function AdminKeyForm({ onClose, onMade }: FormProps) {
  const me = useMe()
  const change = useChange('POST /v1/organization/admin_api_keys', [['admin-keys']], onMade)
  const grantable = permissionNames.filter(
    (name) => name !== 'model.invoke' && me.permissions.includes(name),
  )
  const onSubmit = (form: FormData) =>
    change.mutate({
      body: {
        name: textOf(form, 'name'),
        expires_in_seconds: readExpiry(form),
        permissions: grantable.filter((name) =>
          form.getAll('permission').includes(name),
        ) as Granted,
      },
    })
  return (
    <FormDialog
      title="New administrator key"
      submit="Create key"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={onSubmit}
    >
      <Field label="Name" hint="The server that will use it.">
        {(ids) => <input {...ids} name="name" required maxLength={80} autoComplete="off" />}
      </Field>
      <ExpiryField />
      <Permissions names={grantable} />
    </FormDialog>
  )
}

function Permissions({ names }: { names: readonly Permission[] }) {
  return (
    <fieldset>
      <legend>May</legend>
      <div className="boxed">
        {names.map((name) => (
          <Check
            key={name}
            name="permission"
            value={name}
            label={permissionWords[name]}
            isOn={name.endsWith('.read')}
          />
        ))}
      </div>
    </fieldset>
  )
}
