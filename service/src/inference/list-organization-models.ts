import { listOrganizationModels } from '@gatehouse/contract/model'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'

import { presentCatalogue } from './models.ts'
import type { Catalogue } from './upstreams/catalogue.ts'

/** The models that the organization's projects can call, for administrators. */
export function serveListOrganizationModels(
  app: FastifyInstance,
  { catalogue }: { catalogue: () => Catalogue },
) {
  bind(app, listOrganizationModels, () => presentCatalogue(catalogue()))
}
