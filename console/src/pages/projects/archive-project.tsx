import type { Project } from '@gatehouse/contract/project'

import { useChange } from '#api/use-change.ts'
import { Confirm } from '#parts/confirm.tsx'
import { toast } from '#parts/toasts.tsx'

export function ArchiveProject({ project, onClose }: { project: Project; onClose: () => void }) {
  const change = useChange(
    'POST /v1/organization/projects/:project_id/archive',
    [['project', project.id], ['projects'], ['keys', project.id]],
    () => {
      toast(`${project.name} is archived.`)
      onClose()
    },
  )
  return (
    <Confirm
      title={`Archive ${project.name}?`}
      submit="Archive project"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() => change.mutate({ params: { project_id: project.id } })}
    >
      <p>All keys of this project stop working everywhere within 5 seconds.</p>
      <p>A project that is archived cannot be opened again.</p>
    </Confirm>
  )
}
