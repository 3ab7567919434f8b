import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from './deps.ts'
import { serveCreateAdminApiKey } from './keys/create-admin-api-key.ts'
import { serveCreateProjectApiKey } from './keys/create-project-api-key.ts'
import { serveDeleteAdminApiKey } from './keys/delete-admin-api-key.ts'
import { serveDeleteProjectApiKey } from './keys/delete-project-api-key.ts'
import { serveListAdminApiKeys } from './keys/list-admin-api-keys.ts'
import { serveListProjectApiKeys } from './keys/list-project-api-keys.ts'
import { serveUpdateProjectApiKey } from './keys/update-project-api-key.ts'
import { serveDeleteMemberSession } from './member-sessions/delete-member-session.ts'
import { serveDeleteMemberSessions } from './member-sessions/delete-member-sessions.ts'
import { serveListMemberSessions } from './member-sessions/list-member-sessions.ts'
import { serveCreateMemberInvitation } from './members/create-member-invitation.ts'
import { serveCreateMember } from './members/create-member.ts'
import { serveDeleteMember } from './members/delete-member.ts'
import { serveDeleteProjectMember } from './members/delete-project-member.ts'
import { serveListMembers } from './members/list-members.ts'
import { serveListProjectMembers } from './members/list-project-members.ts'
import { serveListRoles } from './members/list-roles.ts'
import { serveRetrieveMember } from './members/retrieve-member.ts'
import { serveSetProjectMember } from './members/set-project-member.ts'
import { serveUpdateMember } from './members/update-member.ts'
import { serveArchiveProject } from './projects/archive-project.ts'
import { serveCreateProject } from './projects/create-project.ts'
import { serveListProjects } from './projects/list-projects.ts'
import { serveRetrieveProject } from './projects/retrieve-project.ts'
import { serveUpdateProject } from './projects/update-project.ts'
import { serveReadOrganizationSettings } from './settings/read-organization-settings.ts'
import { serveUpdateOrganizationSettings } from './settings/update-organization-settings.ts'

/** Projects, their members and keys, administrator keys, members, and the settings of the organization. */
export function serveAccess(app: FastifyInstance, deps: AccessDeps) {
  serveListProjects(app, deps)
  serveCreateProject(app, deps)
  serveRetrieveProject(app, deps)
  serveUpdateProject(app, deps)
  serveArchiveProject(app, deps)
  serveListProjectMembers(app, deps)
  serveSetProjectMember(app, deps)
  serveDeleteProjectMember(app, deps)
  serveListProjectApiKeys(app, deps)
  serveCreateProjectApiKey(app, deps)
  serveUpdateProjectApiKey(app, deps)
  serveDeleteProjectApiKey(app, deps)
  serveListAdminApiKeys(app, deps)
  serveCreateAdminApiKey(app, deps)
  serveDeleteAdminApiKey(app, deps)
  serveListMembers(app, deps)
  serveCreateMember(app, deps)
  serveCreateMemberInvitation(app, deps)
  serveRetrieveMember(app, deps)
  serveUpdateMember(app, deps)
  serveDeleteMember(app, deps)
  serveListMemberSessions(app, deps)
  serveDeleteMemberSessions(app, deps)
  serveDeleteMemberSession(app, deps)
  serveListRoles(app)
  serveReadOrganizationSettings(app, deps)
  serveUpdateOrganizationSettings(app, deps)
}
