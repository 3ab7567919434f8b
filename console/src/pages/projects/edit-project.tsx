import type { Project } from '@gatehouse/contract/project'

import { useChange } from '#api/use-change.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Field, textOf } from '#parts/field.tsx'
import { toast } from '#parts/toasts.tsx'

import { readLabels, writeLabels } from './label-lines.ts'
import { BudgetFields, LimitFields, readBudget, readLimits } from './limits/limit-fields.tsx'
import { ModelFields, readModels } from './limits/model-fields.tsx'

type EditProps = { project: Project; onClose: () => void }

function useEdit({ project, onClose }: EditProps) {
  const change = useChange(
    'PATCH /v1/organization/projects/:project_id',
    [['project', project.id], ['projects']],
    () => {
      toast('Saved. It holds everywhere within 5 seconds.')
      onClose()
    },
  )
  const shared = { isBusy: change.isPending, error: change.error, onClose, submit: 'Save' }
  const params = { project_id: project.id }
  return { shared, params, save: change.mutate }
}

export function EditProject(props: EditProps) {
  const { project } = props
  const { shared, params, save } = useEdit(props)
  return (
    <FormDialog
      {...shared}
      title={`Edit ${project.name}`}
      onSubmit={(form) =>
        save({
          params,
          body: { name: textOf(form, 'name'), labels: readLabels(textOf(form, 'labels')) },
        })
      }
    >
      <Field label="Name">
        {(ids) => (
          <input {...ids} name="name" required maxLength={80} defaultValue={project.name} />
        )}
      </Field>
      <Field
        label="Labels"
        hint="One on each line, such as cost_center: 4711. Reports of costs are summed by them."
      >
        {(ids) => (
          <textarea
            {...ids}
            className="mono"
            name="labels"
            rows={4}
            defaultValue={writeLabels(project.labels)}
          />
        )}
      </Field>
    </FormDialog>
  )
}

export function EditLimits(props: EditProps) {
  const { project } = props
  const { shared, params, save } = useEdit(props)
  return (
    <FormDialog
      {...shared}
      title={`Limits and budget of ${project.name}`}
      onSubmit={(form) =>
        save({
          params,
          body: {
            limits: readLimits(form),
            monthly_budget: readBudget(form, project.monthly_budget),
          },
        })
      }
    >
      <LimitFields limits={project.limits} />
      <BudgetFields budget={project.monthly_budget} />
    </FormDialog>
  )
}

export function EditModels(props: EditProps) {
  const { project } = props
  const { shared, params, save } = useEdit(props)
  return (
    <FormDialog
      {...shared}
      title={`Models of ${project.name}`}
      onSubmit={(form) => save({ params, body: { allowed_models: readModels(form) } })}
    >
      <ModelFields allowed={project.allowed_models} />
    </FormDialog>
  )
}
