import { z } from 'zod'

export type JsonSchema = z.core.JSONSchema.JSONSchema

/** A zod object as plain JSON Schema: its members by name, references resolved. */
type Members = { schemas: Record<string, JsonSchema>; required: readonly string[] }

/**
 * The members of an object schema. Where the body is a choice of several objects, their members
 * are joined: a member is required when every alternative asks for it.
 */
export function membersOf(schema: z.ZodType, io: 'input' | 'output'): Members {
  const root = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonSchema
  const objects = alternativesOf(inlined(root, root.$defs ?? {}))
  const names = [...new Set(objects.flatMap(({ properties = {} }) => Object.keys(properties)))]
  return {
    schemas: Object.fromEntries(names.map((name) => [name, joined(objects, name)])),
    required: names.filter((name) => objects.every(({ required }) => required?.includes(name))),
  }
}

function joined(objects: readonly JsonSchema[], name: string): JsonSchema {
  const found = objects
    .map(({ properties }) => properties?.[name])
    .filter((schema) => typeof schema === 'object')
  return found.length === 1 && found[0] ? found[0] : { anyOf: found }
}

/** The forms a value may have, choices inside choices flattened; `null` is a form too. */
export function alternativesOf(schema: JsonSchema): JsonSchema[] {
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.flatMap(alternativesOf)
  if (!Array.isArray(schema.type)) return [schema]
  return schema.type.map((type) => ({ ...schema, type }))
}

/** Deeper than flags need: a schema that refers to itself would be expanded forever. */
const depthMax = 8

/** Replaces references into `$defs` by the schemas they name. */
function inlined(schema: JsonSchema, named: Record<string, JsonSchema>, depth = 0): JsonSchema {
  if (depth > depthMax) return {}
  const inside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inside)
    return isObject(value) ? inlined(value, named, depth + 1) : value
  }
  const entries = Object.entries(dereferenced(schema, named))
  return Object.fromEntries(entries.map(([key, value]) => [key, inside(value)]))
}

function dereferenced(schema: JsonSchema, named: Record<string, JsonSchema>): JsonSchema {
  const { $ref, ...own } = schema
  const target = $ref && named[$ref.replace('#/$defs/', '')]
  return target ? dereferenced({ ...target, ...own }, named) : own
}

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null
