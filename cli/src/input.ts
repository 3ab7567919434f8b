import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Arguments } from './arguments.ts'
import { type Flag, type Part, pathFlags } from './flags.ts'
import { UsageError } from './usage-error.ts'
import { jsonFrom, type ReadText, valueFrom } from './value.ts'

export type Input = Partial<Record<Part, Record<string, unknown>>>

/** What is sent to the service. Only what is missing is refused here; the service checks the values. */
export function inputFrom(
  endpoint: Endpoint,
  flags: readonly Flag[],
  given: Arguments,
  readText: ReadText,
): Input {
  const ofPath = pathFlags(endpoint, flags)
  for (const { name } of ofPath) checkId(name, given.text(name))
  const valuesIn = (part: Part) => Object.fromEntries(entriesIn(part, flags, given, readText))
  const input: Input = {
    ...(endpoint.params && { params: valuesIn('params') }),
    ...(endpoint.query && { query: valuesIn('query') }),
    ...(endpoint.headers && { headers: valuesIn('headers') }),
    ...(endpoint.body && { body: { ...wholeBody(given, readText), ...valuesIn('body') } }),
  }
  requireFlags([...new Set([...ofPath, ...flags])], input)
  return input
}

function requireFlags(flags: readonly Flag[], input: Input) {
  const missing = flags
    .filter(({ isRequired, part, member }) => isRequired && input[part]?.[member] === undefined)
    .map(({ name }) => `--${name}`)
  if (missing.length === 0) return
  const verb = missing.length === 1 ? 'is' : 'are'
  throw new UsageError(`${new Intl.ListFormat('en').format(missing)} ${verb} missing.`)
}

/** An empty id, or one of dots, would address another operation. */
function checkId(flag: string, id: string | undefined) {
  if (id === undefined) return
  if (/^\.{0,2}$/.test(id)) throw new UsageError(`--${flag} takes an id, not '${id}'.`)
}

function entriesIn(part: Part, flags: readonly Flag[], given: Arguments, readText: ReadText) {
  return flags
    .filter((flag) => flag.part === part)
    .map((flag) => [flag.member, valueOf(flag, given, readText)] as const)
    .filter(([, value]) => value !== undefined)
}

function valueOf({ name, shape }: Flag, given: Arguments, readText: ReadText): unknown {
  if (shape.kind === 'boolean') return given.isOn(name)
  const texts = given.texts(name)
  if (texts.length === 0) return undefined
  return naming(name, () => valueFrom(texts, shape, readText))
}

/** `--body`: for long bodies and for members that flags cannot express; other flags replace its members. */
function wholeBody(given: Arguments, readText: ReadText): object {
  const text = given.text('body')
  if (text === undefined) return {}
  const body = naming('body', () => jsonFrom(text, readText))
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (!isObject) throw new UsageError('--body takes a JSON object.')
  return body
}

/** Adds the name of the flag to a usage error. */
export function naming<Value>(flag: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new UsageError(`--${flag} ${error.message}.`, { cause: error })
  }
}
