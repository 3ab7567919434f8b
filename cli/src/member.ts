import { alternativesOf, type JsonSchema } from './json-schema.ts'

type Kind = 'text' | 'integer' | 'number' | 'boolean' | 'json' | 'list'

/** How a value is written on the command line. */
export type Shape = {
  kind: Kind
  isNullable: boolean
  /** Its allowed values or range, in words; may be empty. */
  bounds: string
  /** The items of a list. */
  items?: Shape
}

/** A value without one plain form is written as JSON, so that every member has a flag. */
export function shapeOf(schema: JsonSchema): Shape {
  const all = alternativesOf(schema)
  const forms = all.filter(({ type }) => type !== 'null')
  const [kind, ...otherKinds] = new Set(forms.map(kindOf))
  const shape = { isNullable: forms.length < all.length, bounds: boundsOf(forms) }
  if (!kind || otherKinds.length > 0) return { ...shape, kind: 'json' }
  return kind === 'list' ? { ...shape, kind, items: itemsOf(forms) } : { ...shape, kind }
}

const kindOfType = {
  string: 'text',
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  object: 'json',
  null: 'json',
} as const satisfies Record<string, Kind>

function kindOf({ type }: JsonSchema): Kind {
  return typeof type === 'string' ? kindOfType[type] : 'json'
}

function itemsOf(forms: readonly JsonSchema[]): Shape {
  return shapeOf({ anyOf: forms.map(({ items }) => (isSchema(items) ? items : {})) })
}

const isSchema = (items: JsonSchema['items']): items is JsonSchema =>
  typeof items === 'object' && !Array.isArray(items)

function boundsOf(forms: readonly JsonSchema[]): string {
  const values = forms.map(valuesOf)
  if (values.every((some) => some.length > 0)) {
    return `one of ${[...new Set(values.flat())].join(', ')}`
  }
  const [form, ...others] = forms
  return form && others.length === 0 ? rangeOf(form) : ''
}

function valuesOf(schema: JsonSchema): string[] {
  return (schema.enum ?? (schema.const === undefined ? [] : [schema.const])).map(String)
}

function rangeOf({ type, ...schema }: JsonSchema): string {
  if (type === 'string') return between(schema.minLength, schema.maxLength, ' characters')
  if (type === 'array') return between(schema.minItems, schema.maxItems, ' items')
  return between(schema.minimum, schema.maximum, '')
}

/** Schemas have the largest safe integer where there is no bound: it is left out. */
function between(min: number | undefined, max: number | undefined, unit: string): string {
  const least = min && Math.abs(min) < Number.MAX_SAFE_INTEGER ? min : undefined
  const most = max !== undefined && max < Number.MAX_SAFE_INTEGER ? max : undefined
  if (most === undefined) return least === undefined ? '' : `at least ${least}${unit}`
  return min === undefined ? `at most ${most}${unit}` : `${min} to ${most}${unit}`
}
