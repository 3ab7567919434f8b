import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from './deps.ts'
import { serveCreateAdminApiKey } from './keys/create-admin-api-key.ts'
import { serveCreateProjectApiKey } from './keys/create-project-api-key.ts'
import { serveDeleteAdminApiKey } from './keys/delete-admin-api-key.ts'
import { serveDeleteProjectApiKey } from './keys/delete-project-api-key.ts'
import { serveListAdminApiKeys } from './keys/list-admin-api-keys.ts'
import { serveListProjectApiKeys } from './keys/list-project-api-keys.ts'
import { serveUpdateProjectApiKey } from './keys/update-project-api-key.ts'
import { serveArchiveProject } from './projects/archive-project.ts'
import { serveCreateProject } from './projects/create-project.ts'
import { serveListProjects } from './projects/list-projects.ts'
import { serveRetrieveProject } from './projects/retrieve-project.ts'
import { serveUpdateProject } from './projects/update-project.ts'

/** Projects, their keys, and administrator keys. */
export function serveAccess(app: FastifyInstance, deps: AccessDeps) {
  serveListProjects(app, deps)
  serveCreateProject(app, deps)
  serveRetrieveProject(app, deps)
  serveUpdateProject(app, deps)
  serveArchiveProject(app, deps)
  serveListProjectApiKeys(app, deps)
  serveCreateProjectApiKey(app, deps)
  serveUpdateProjectApiKey(app, deps)
  serveDeleteProjectApiKey(app, deps)
  serveListAdminApiKeys(app, deps)
  serveCreateAdminApiKey(app, deps)
  serveDeleteAdminApiKey(app, deps)
}
