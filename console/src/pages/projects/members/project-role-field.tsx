import type { ProjectRole } from '@gatehouse/contract/role'

export const projectRoleNames: Readonly<Record<ProjectRole, string>> = {
  project_admin: 'Administrator',
  project_member: 'Member',
}

const meanings: Readonly<Record<ProjectRole, string>> = {
  project_member: 'Sees the project, and makes and revokes keys of their own.',
  project_admin: 'Also manages its members, all of its keys, its limits and its budget.',
}

const roles: readonly ProjectRole[] = ['project_member', 'project_admin']

export function ProjectRoleField({ role }: { role: ProjectRole }) {
  return (
    <fieldset>
      <legend>In the project</legend>
      {roles.map((each) => (
        <label className="check" key={each}>
          <input type="radio" name="role" value={each} defaultChecked={each === role} />
          <span>
            {projectRoleNames[each]}
            <span className="hint">{meanings[each]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}

export const readProjectRole = (form: FormData): ProjectRole =>
  form.get('role') === 'project_admin' ? 'project_admin' : 'project_member'
