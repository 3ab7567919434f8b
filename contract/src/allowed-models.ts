import { z } from 'zod'

import { AnyId } from './text.ts'

const modelsMax = 500

/** As a project or a key shows it. */
export const AllowedModels = z
  .array(z.string())
  .nullable()
  .describe('The ids of the models that calls may use. null: all models. An empty list: none.')

const names = z.array(AnyId).max(modelsMax)

/** In a create. Aliases are stored as the ids of their models. */
export const GivenAllowedModels = names
  .nullish()
  .describe('Ids or aliases of models that exist. Absent or null: all models.')

/** A change of `AllowedModels`, which replaces all of it. */
export const AllowedModelsEdit = names
  .nullish()
  .describe(
    'Ids or aliases of models that exist. null allows all models again; absent keeps the list.',
  )
