import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import type { Answer } from '#api/operations.ts'
import { useChange } from '#api/use-change.ts'
import { BudgetFields, readBudget } from '#pages/projects/limits/limit-fields.tsx'
import { ModelFields, readModels } from '#pages/projects/limits/model-fields.tsx'
import { projectQuery } from '#pages/projects/queries.ts'
import { useProjectRights } from '#pages/projects/rights.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Check, Field, textOf } from '#parts/field.tsx'

import { ExpiryField, readExpiry } from './expiry-field.tsx'
import { NewSecret } from './new-secret.tsx'

type CreateKeyProps = { projectId: string; onClose: () => void }
type NewKey = Answer<'POST /v1/organization/projects/:project_id/api_keys'>

/** Asks for what a key needs, then shows its secret. The secret is only in this window, and gone with it. */
export function CreateKey({ projectId, onClose }: CreateKeyProps) {
  const [made, setMade] = useState<NewKey | null>(null)
  if (made) return <NewSecret name={made.name} secret={made.value} onClose={onClose} />
  return <KeyForm projectId={projectId} onClose={onClose} onMade={setMade} />
}

type KeyFormProps = CreateKeyProps & { onMade: (key: NewKey) => void }

function KeyForm({ projectId, onClose, onMade }: KeyFormProps) {
  const rights = useProjectRights(projectId)
  const { data: project } = useQuery(projectQuery(projectId))
  const change = useChange(
    'POST /v1/organization/projects/:project_id/api_keys',
    [['keys', projectId]],
    onMade,
  )
  const hasChoice = rights.canMakeSharedKeys && rights.canMakeOwnKeys
  const onSubmit = (form: FormData) => {
    const budget = readBudget(form, null)
    change.mutate({
      params: { project_id: projectId },
      body: {
        name: textOf(form, 'name'),
        expires_in_seconds: readExpiry(form),
        allowed_models: readModels(form),
        ...(budget && { monthly_budget: budget }),
        ...(hasChoice && { own: form.get('own') === 'on' }),
      },
    })
  }
  return (
    <FormDialog
      title={`New key${project ? ` of ${project.name}` : ''}`}
      submit="Create key"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={onSubmit}
    >
      <Field label="Name" hint="What will use it, such as search-production.">
        {(ids) => <input {...ids} name="name" required maxLength={80} autoComplete="off" />}
      </Field>
      <ExpiryField />
      {hasChoice && (
        <Check
          name="own"
          label="My own key"
          hint="It stops when you leave the project. Leave this off for servers."
        />
      )}
      <BudgetFields budget={null} />
      <ModelFields allowed={null} />
    </FormDialog>
  )
}
