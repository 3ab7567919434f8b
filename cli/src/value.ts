import type { Shape } from './member.ts'
import { UsageError } from './usage-error.ts'

export type ReadText = (path: string) => string

/** Turns the texts after a flag into the value that the service expects. The service checks its bounds. */
export function valueFrom(texts: readonly string[], shape: Shape, readText: ReadText): unknown {
  if (shape.isNullable && shape.kind !== 'text' && texts.join() === 'null') return null
  const { items } = shape
  if (items) return texts.flatMap((text) => listFrom(text, items, readText))
  const [text = '', ...again] = texts
  if (again.length > 0) throw new UsageError('is given more than once')
  return oneFrom(text, shape, readText)
}

function oneFrom(text: string, { kind }: Shape, readText: ReadText): unknown {
  if (kind === 'text') return text
  if (kind !== 'integer' && kind !== 'number') return jsonFrom(text, readText)
  const isWritten = kind === 'integer' ? /^-?\d{1,15}$/ : /^-?\d{1,15}(\.\d{1,15})?$/
  if (!isWritten.test(text)) throw new UsageError(`takes a number, not '${text}'`)
  return Number(text)
}

/** `a,b` or a JSON array; an empty text is an empty list. */
function listFrom(text: string, items: Shape, readText: ReadText): unknown {
  if (text === '') return []
  if (items.kind === 'json' || text.startsWith('[')) return jsonFrom(text, readText)
  return text.split(',').map((part) => oneFrom(part.trim(), items, readText))
}

/** JSON text, or `@path` for a file: an argument has at most 128 KiB, and other users can read it. */
export function jsonFrom(text: string, readText: ReadText): unknown {
  const source = text.startsWith('@') ? fileText(text.slice(1), readText) : text
  try {
    return JSON.parse(source) as unknown
  } catch {
    throw new UsageError('takes JSON, or @ and the name of a file that holds JSON')
  }
}

export function fileText(path: string, readText: ReadText): string {
  try {
    return readText(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`names a file that cannot be read: ${reason}`, { cause: error })
  }
}
