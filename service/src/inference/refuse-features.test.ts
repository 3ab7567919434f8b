import { expect, test } from 'vitest'

import { fieldTables } from '#formats/fields/field-tables.ts'
import { findFeatures } from '#formats/fields/find-features.ts'

import { refuseFurtherModels } from './refuse-features.ts'
import { type CatalogueModel, emptyCatalogue, onlyAllowed } from './upstreams/catalogue.ts'

const modelOf = (id: string, upstreamName: string): CatalogueModel =>
  ({ id, upstreams: [{ model: upstreamName }] }) as unknown as CatalogueModel
const models = [modelOf('small', 'vendor-small-1'), modelOf('large', 'vendor-large-1')]
const catalogue = {
  ...emptyCatalogue,
  models,
  find: (name: string) => models.find(({ id }) => id === name || name === `${id}-latest`),
}

function asksFor(model: unknown, allowed: string[]) {
  const request = { tools: [{ name: 'f' }, { type: 'advisor_20260301', name: 'advisor', model }] }
  const asked = findFeatures(fieldTables.messages, request, {})
  refuseFurtherModels(asked, onlyAllowed(catalogue, allowed))
}

test.each(['large', 'large-latest', 'vendor-large-1', 'vendor-medium-1'])(
  "a tool that names '%s' is refused where that is not allowed, with the same words",
  (name) => {
    expect(() => asksFor(name, ['small'])).toThrow(
      expect.objectContaining({
        code: 'model_not_found',
        message: `There is no model '${name}'; GET /v1/models lists those you can call.`,
        param: 'body.tools[1].model',
      }),
    )
  },
)

test.each(['large', 'large-latest', 'vendor-large-1', undefined, 7])(
  'a tool may name %s where that is allowed, or nothing',
  (name) => expect(() => asksFor(name, ['small', 'large'])).not.toThrow(),
)
