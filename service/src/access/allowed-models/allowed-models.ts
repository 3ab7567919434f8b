import { ApiError } from '#platform/api-error.ts'

// The models that calls of a project or a key may use, by their ids; null: all of them. The list stands in its row.

/** The id of the model that a name stands for, which is an id or an alias. */
export type ModelIdOf = (name: string) => string | undefined

type Models = readonly string[] | null

/** The ids of the named models, each once; 422 for a name of no model. */
export function toAllowedModels(given: Models | undefined, modelIdOf: ModelIdOf): string[] | null {
  if (!given) return null
  const ids = given.map((name, index) => {
    const id = modelIdOf(name)
    if (id !== undefined) return id
    const param = `body.allowed_models.${index}`
    throw new ApiError(
      'invalid_parameter',
      `'${param}' is '${name.slice(0, 100)}', which names no model; GET /v1/organization/models lists the models.`,
      { param },
    )
  })
  return [...new Set(ids)]
}

/** Absent keeps the list, and null removes it. */
export const editModels = (
  before: string[] | null,
  edit: Models | undefined,
  modelIdOf: ModelIdOf,
): string[] | null => (edit === undefined ? before : toAllowedModels(edit, modelIdOf))

export const areSameModels = (one: Models, other: Models): boolean =>
  one?.join('\n') === other?.join('\n')
