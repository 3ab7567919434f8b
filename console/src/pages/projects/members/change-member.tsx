import type { ProjectMember } from '@gatehouse/contract/members/project-member'

import { useChange } from '#api/use-change.ts'
import { Confirm } from '#parts/confirm.tsx'
import { FormDialog } from '#parts/dialog.tsx'
import { toast } from '#parts/toasts.tsx'

import { ProjectRoleField, readProjectRole } from './project-role-field.tsx'

type ChangeProps = { member: ProjectMember; onClose: () => void }

const paramsOf = ({ project_id, id }: ProjectMember) => ({ project_id, member_id: id })

export function ChangeProjectRole({ member, onClose }: ChangeProps) {
  const change = useChange(
    'PUT /v1/organization/projects/:project_id/members/:member_id',
    [['project-members', member.project_id], ['me']],
    () => {
      toast(`The role of ${member.name} has been changed.`)
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
        change.mutate({ params: paramsOf(member), body: { role: readProjectRole(form) } })
      }
    >
      <ProjectRoleField role={member.role} />
    </FormDialog>
  )
}

export function RemoveFromProject({ member, onClose }: ChangeProps) {
  const change = useChange(
    'DELETE /v1/organization/projects/:project_id/members/:member_id',
    [['project-members', member.project_id], ['keys', member.project_id], ['me']],
    () => {
      toast(`${member.name} has left the project.`)
      onClose()
    },
  )
  return (
    <Confirm
      title={`Remove ${member.name} from the project?`}
      submit="Remove member"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onConfirm={() => change.mutate({ params: paramsOf(member) })}
    >
      <p>
        The keys that this person made for themself here are revoked for good, within 5 seconds.
        Keys of the organization go on.
      </p>
    </Confirm>
  )
}
