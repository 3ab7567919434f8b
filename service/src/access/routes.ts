import type { FastifyInstance } from 'fastify'

import { serveCreateAdminApiKey } from './keys/create-admin-api-key.ts'
import { serveCreateProjectApiKey } from './keys/create-project-api-key.ts'
import { serveDeleteAdminApiKey } from './keys/delete-admin-api-key.ts'
import { serveDeleteProjectApiKey } from './keys/delete-project-api-key.ts'
import { serveListAdminApiKeys } from './keys/list-admin-api-keys.ts'
import { serveListProjectApiKeys } from './keys/list-project-api-keys.ts'
import { serveArchiveProject } from './projects/archive-project.ts'
import { serveCreateProject } from './projects/create-project.ts'
import { serveListProjects } from './projects/list-projects.ts'
import { serveRetrieveProject } from './projects/retrieve-project.ts'
import { serveUpdateProject } from './projects/update-project.ts'
import type { AccessTools } from './tools.ts'

/** Projects, their keys, and administrator keys. */
export function serveAccess(app: FastifyInstance, tools: AccessTools) {
  serveListProjects(app, tools)
  serveCreateProject(app, tools)
  serveRetrieveProject(app, tools)
  serveUpdateProject(app, tools)
  serveArchiveProject(app, tools)
  serveListProjectApiKeys(app, tools)
  serveCreateProjectApiKey(app, tools)
  serveDeleteProjectApiKey(app, tools)
  serveListAdminApiKeys(app, tools)
  serveCreateAdminApiKey(app, tools)
  serveDeleteAdminApiKey(app, tools)
}
