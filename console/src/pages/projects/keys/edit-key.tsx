import type { ProjectApiKey } from '@gatehouse/contract/api-key'

import { useChange } from '#api/use-change.ts'
import {
  BudgetFields,
  LimitFields,
  readBudget,
  readLimits,
} from '#pages/projects/limits/limit-fields.tsx'
import { ModelFields, readModels } from '#pages/projects/limits/model-fields.tsx'
import { FormDialog } from '#parts/dialog.tsx'
import { toast } from '#parts/toasts.tsx'

type EditKeyProps = { projectId: string; apiKey: ProjectApiKey; onClose: () => void }

export function EditKey({ projectId, apiKey, onClose }: EditKeyProps) {
  const { id, name, limits, monthly_budget: budget, allowed_models: models } = apiKey
  const change = useChange(
    'PATCH /v1/organization/projects/:project_id/api_keys/:key_id',
    [['keys', projectId]],
    () => {
      toast(`The limits of ${name} have been saved.`)
      onClose()
    },
  )
  return (
    <FormDialog
      title={`Limits of ${name}`}
      submit="Save"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={(form) =>
        change.mutate({
          params: { project_id: projectId, key_id: id },
          body: {
            limits: readLimits(form),
            monthly_budget: readBudget(form, budget),
            allowed_models: readModels(form),
          },
        })
      }
    >
      <LimitFields limits={limits} />
      <BudgetFields budget={budget} />
      <ModelFields allowed={models} />
    </FormDialog>
  )
}
