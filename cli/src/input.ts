import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Arguments } from './arguments.ts'
import { pathFlags } from './command.ts'
import type { Flag, Part } from './flags.ts'
import { UsageError } from './usage-error.ts'
import { jsonFrom, type ReadText, valueFrom } from './value.ts'

export type Input = Partial<Record<Part, Record<string, unknown>>>

/** What the service gets. Only the path is checked here: without it there is no address to call. */
export function inputFrom(
  endpoint: Endpoint,
  flags: readonly Flag[],
  given: Arguments,
  readText: ReadText,
): Input {
  for (const { name } of pathFlags(endpoint, flags)) checkId(name, given.text(name))
  const valuesIn = (part: Part) => Object.fromEntries(entriesIn(part, flags, given, readText))
  return {
    ...(endpoint.params && { params: valuesIn('params') }),
    ...(endpoint.query && { query: valuesIn('query') }),
    ...(endpoint.body && { body: { ...wholeBody(given, readText), ...valuesIn('body') } }),
  }
}

function checkId(flag: string, id: string | undefined) {
  if (id === undefined) throw new UsageError(`--${flag} is missing.`)
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

/** For long bodies and for members that flags cannot express; single flags replace its members. */
function wholeBody(given: Arguments, readText: ReadText): object {
  const text = given.text('body')
  if (text === undefined) return {}
  const body = naming('body', () => jsonFrom(text, readText))
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (!isObject) throw new UsageError('--body takes a JSON object.')
  return body
}

/** Says which flag a complaint is about. */
export function naming<Value>(flag: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new UsageError(`--${flag} ${error.message}.`, { cause: error })
  }
}
