import { isRecord, listOf, recordOf, textOf, type Json } from './json.ts'

/** Below this depth only required properties are built, so that recursive schemas terminate. */
const fullDepth = 4
const deepest = 32

const byFormat: Record<string, string> = {
  'date-time': '2026-01-02T03:04:05Z',
  date: '2026-01-02',
  time: '03:04:05Z',
  duration: 'P1D',
  email: 'someone@example.com',
  hostname: 'example.com',
  uri: 'https://example.com/',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '7d444840-9dc0-11d1-b245-5ffdce74fad2',
}

/** Builds a value that is valid for a JSON schema; patterns are ignored. */
export function valueForSchema(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (!isRecord(schema) || depth > deepest) return schema === false ? undefined : null
  const next = (inner: unknown) => valueForSchema(inner, root, depth + 1)
  const reference = textOf(schema['$ref'])
  if (reference !== undefined) return next(resolve(reference, root))
  if ('const' in schema) return schema['const']
  const [choice] = listOf(schema['enum'])
  if (choice !== undefined) return choice
  if (Array.isArray(schema['allOf'])) return next(merged(schema, schema['allOf'], root))
  const alternatives = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])]
  if (alternatives.length > 0) return next(chosen(alternatives, depth))
  return valueForType(schema, next, depth)
}

function valueForType(schema: Json, next: (inner: unknown) => unknown, depth: number): unknown {
  const declared = schema['type']
  const type = textOf(declared) ?? textOf(chosen(listOf(declared), depth)) ?? impliedType(schema)
  switch (type) {
    case 'string':
      return stringFor(schema)
    case 'integer':
    case 'number':
      return numberFor(schema, type === 'integer')
    case 'boolean':
      return true
    case 'array':
      return arrayFor(schema, next, depth)
    case 'null':
      return null
    default:
      return objectFor(schema, next, depth)
  }
}

function impliedType(schema: Json): string {
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  return 'object'
}

/** Null ends a recursive schema at depth; elsewhere a more specific alternative is preferred. */
function chosen(alternatives: readonly unknown[], depth: number): unknown {
  const isNull = (one: unknown) => one === 'null' || recordOf(one)['type'] === 'null'
  const found = alternatives.find((one) => (depth > fullDepth ? isNull(one) : !isNull(one)))
  return found ?? alternatives[0]
}

function merged(schema: Json, parts: readonly unknown[], root: unknown): Json {
  const { allOf: _, ...own } = schema
  const all = [own, ...parts].map((part) => {
    const reference = textOf(recordOf(part)['$ref'])
    return recordOf(reference === undefined ? part : resolve(reference, root))
  })
  const properties = Object.assign({}, ...all.map((part) => recordOf(part['properties'])))
  const required = all.flatMap((part) => listOf(part['required']))
  return { ...Object.assign({}, ...all), properties, required }
}

function resolve(reference: string, root: unknown): unknown {
  const steps = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
  return steps.reduce<unknown>(
    (node, step) => recordOf(node)[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    root,
  )
}

function stringFor(schema: Json): string {
  const format = byFormat[textOf(schema['format']) ?? '']
  const least = Number(schema['minLength'] ?? 0)
  const most = Number(schema['maxLength'] ?? Number.MAX_SAFE_INTEGER)
  return (format ?? 'text').padEnd(least, 'x').slice(0, most)
}

function numberFor(schema: Json, isInteger: boolean): number {
  const step = Number(schema['multipleOf'] ?? (isInteger ? 1 : 0.5))
  const above = schema['exclusiveMinimum']
  const below = schema['exclusiveMaximum']
  const least = typeof above === 'number' ? above + step : Number(schema['minimum'] ?? step)
  const most = typeof below === 'number' ? below - step : Number(schema['maximum'] ?? least)
  return least <= most || 'minimum' in schema || above !== undefined
    ? Math.ceil(least / step) * step
    : Math.floor(most / step) * step
}

function arrayFor(schema: Json, next: (inner: unknown) => unknown, depth: number): unknown[] {
  const first = listOf(schema['prefixItems']).map(next)
  const least = Number(schema['minItems'] ?? (depth > fullDepth ? 0 : 1))
  const most = Number(schema['maxItems'] ?? Number.MAX_SAFE_INTEGER)
  const count = schema['items'] === false ? first.length : Math.max(first.length, least)
  const rest = Array.from({ length: count - first.length }, () => next(schema['items'] ?? {}))
  return [...first, ...rest].slice(0, most)
}

function objectFor(schema: Json, next: (inner: unknown) => unknown, depth: number): Json {
  const required = new Set(listOf(schema['required']))
  const built = Object.entries(recordOf(schema['properties']))
    .filter(([name]) => depth <= fullDepth || required.has(name))
    .map(([name, inner]) => [name, next(inner)])
  return Object.fromEntries(built) as Json
}
