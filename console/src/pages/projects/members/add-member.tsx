import { useInfiniteQuery } from '@tanstack/react-query'

import { useChange } from '#api/use-change.ts'
import { membersQuery } from '#pages/members/queries.ts'
import { useProjectRights } from '#pages/projects/rights.ts'
import { FormDialog } from '#parts/dialog.tsx'
import { Field, textOf } from '#parts/field.tsx'
import { toast } from '#parts/toasts.tsx'

import { ProjectRoleField, readProjectRole } from './project-role-field.tsx'

type AddMemberProps = { projectId: string; onClose: () => void }

/** Takes a member of the organization into the project. */
export function AddMember({ projectId, onClose }: AddMemberProps) {
  const { canFindMembers } = useProjectRights(projectId)
  const change = useChange(
    'PUT /v1/organization/projects/:project_id/members/:member_id',
    [['project-members', projectId], ['me']],
    ({ name }) => {
      toast(`${name} is in the project.`)
      onClose()
    },
  )
  return (
    <FormDialog
      title="Add a member to the project"
      submit="Add member"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={(form) =>
        change.mutate({
          params: { project_id: projectId, member_id: textOf(form, 'member') },
          body: { role: readProjectRole(form) },
        })
      }
    >
      {canFindMembers ? <MemberChoice /> : <MemberId />}
      <ProjectRoleField role="project_member" />
    </FormDialog>
  )
}

function MemberChoice() {
  const { data } = useInfiniteQuery(membersQuery({}))
  return (
    <Field label="Member" hint="People who are not in the list have to be invited first.">
      {(ids) => (
        <select {...ids} name="member" required defaultValue="">
          <option value="">{data ? 'Choose a member' : 'Reading …'}</option>
          {data?.rows.map(({ id, name, email }) => (
            <option key={id} value={id}>
              {name} ({email})
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

function MemberId() {
  return (
    <Field label="Id of the member" hint="The person finds it on the page Your account.">
      {(ids) => (
        <input
          {...ids}
          name="member"
          className="mono"
          required
          placeholder="mem_…"
          maxLength={200}
        />
      )}
    </Field>
  )
}
