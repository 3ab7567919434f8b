import fc, { type Arbitrary } from 'fast-check'
import { z } from 'zod'

type JsonSchema = {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  $ref?: string
  $defs?: Record<string, JsonSchema>
}

/** `output` is for query strings, whose input is any text: few texts that are generated would be numbers. */
type Io = 'input' | 'output'

/** Generates values that satisfy a schema of the contract. */
export function valid(schema: z.ZodType, io: Io = 'input'): Arbitrary<unknown> {
  const root = z.toJSONSchema(schema, { io }) as JsonSchema
  return arbitraryOf(root, root.$defs ?? {}).filter(
    (value) => io === 'output' || schema.safeParse(value).success,
  )
}

function arbitraryOf(schema: JsonSchema, defs: Record<string, JsonSchema>): Arbitrary<unknown> {
  if (schema.$ref) return arbitraryOf(defs[schema.$ref.replace('#/$defs/', '')] ?? {}, defs)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches) return fc.oneof(...branches.map((each) => arbitraryOf(each, defs)))
  switch (schema.type) {
    case 'string':
      return fc.string({
        unit: 'grapheme',
        minLength: schema.minLength ?? 0,
        maxLength: Math.min(schema.maxLength ?? 50, 200),
      })
    case 'integer':
      return fc.integer({ min: bounded(schema.minimum, -1e9), max: bounded(schema.maximum, 1e9) })
    case 'number':
      return fc.double({
        min: bounded(schema.minimum, -1e9),
        max: bounded(schema.maximum, 1e9),
        noNaN: true,
      })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(arbitraryOf(schema.items ?? {}, defs), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 10, 20),
      })
    case 'object':
      return fc.record(
        Object.fromEntries(
          Object.entries(schema.properties ?? {}).map(([name, each]) => [
            name,
            arbitraryOf(each, defs),
          ]),
        ),
        { requiredKeys: schema.required ?? [], noNullPrototype: true },
      )
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

const bounded = (bound: number | undefined, limit: number) =>
  limit < 0 ? Math.max(bound ?? limit, limit) : Math.min(bound ?? limit, limit)

/** Generates bad input: nearly valid values, values of the wrong type, and arbitrary values. */
export function hostile(schema: z.ZodType, io: Io = 'input'): Arbitrary<unknown> {
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 4 }),
    fc.constantFrom(...awkward),
    fc.string({ unit: 'binary', maxLength: 300 }),
  )
  const mutated = fc
    .tuple(valid(schema, io), fc.string({ maxLength: 12 }), fc.nat(9), anything)
    .map(([value, name, index, replacement]) => mutate(value, name, index, replacement))
  return fc.oneof({ weight: 3, arbitrary: mutated }, { weight: 1, arbitrary: anything })
}

/** Values that have broken services before. */
const awkward = [
  null,
  '',
  ' ',
  '\0',
  '\ud800',
  '\u202e',
  '0',
  -1,
  0,
  1e308,
  2 ** 53,
  2147483648,
  [],
  {},
  true,
  'a'.repeat(5000),
  '💥'.repeat(81),
  "'; drop table api_key; --",
  '%00',
  '${7*7}',
  '{{7*7}}',
]

function mutate(value: unknown, name: string, index: number, replacement: unknown): unknown {
  if (typeof value !== 'object' || value === null) return replacement
  const entries = Object.entries(value)
  const chosen = entries[index % Math.max(entries.length, 1)]?.[0]
  if (index < 5 && chosen !== undefined) return { ...value, [chosen]: replacement }
  if (index < 7) return { ...value, [name]: replacement }
  return Object.fromEntries(entries.filter(([each]) => each !== chosen))
}
