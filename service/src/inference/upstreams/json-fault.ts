/** Where a text stops being JSON, and what should stand there. */
type JsonFault = { line: number; column: number; expected: string }

type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma' | 'end'

const space = /[ \t\n\r]*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** All but quotes, backslashes and control characters. */
const plainCharacters = /[\x20\x21\x23-\x5b\x5d-\uffff]*/y
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/**
 * Finds the first fault in a text that `JSON.parse` has refused. The message of `JSON.parse` often has no position, and quotes
 * the text, which may contain a secret.
 */
export function findJsonFault(text: string): JsonFault {
  const open: ('{' | '[')[] = []
  let expected: Expected = 'value'
  let position = skip(space, text, 0)

  const close = (): Expected => {
    open.pop()
    return open.length > 0 ? 'comma' : 'end'
  }

  /** The token at `position`: where it ends and what follows it. Undefined: it is not an expected one. */
  function take(character: string): { end: number; next: Expected } | undefined {
    const after = (next: Expected) => ({ end: position + 1, next })
    const last = open.at(-1)
    switch (expected) {
      case 'colon':
        return character === ':' ? after('value') : undefined
      case 'comma':
        if (character === ',') return after(last === '{' ? 'name' : 'value')
        return character === (last === '{' ? '}' : ']') ? after(close()) : undefined
      case 'name':
      case 'first name': {
        if (character === '}' && expected === 'first name') return after(close())
        const end = endOfString(text, position)
        return end === undefined ? undefined : { end, next: 'colon' }
      }
      case 'value':
      case 'first value': {
        if (character === ']' && expected === 'first value') return after(close())
        if (character === '{' || character === '[') {
          open.push(character)
          return after(character === '{' ? 'first name' : 'first value')
        }
        const end = endOfString(text, position) ?? endOfScalar(text, position)
        return end === undefined ? undefined : { end, next: open.length > 0 ? 'comma' : 'end' }
      }
      case 'end':
        return undefined
    }
  }

  while (position < text.length) {
    const token = take(text.charAt(position))
    if (!token) break
    expected = token.next
    position = skip(space, text, token.end)
  }
  const isBrokenString = text[position] === '"' && mayBeString.has(expected)
  return {
    ...toLine(text, position),
    expected: isBrokenString
      ? 'a string that ends on its line, with valid escapes'
      : describe(expected, open.at(-1)),
  }
}

const mayBeString: ReadonlySet<Expected> = new Set(['value', 'first value', 'name', 'first name'])

function skip(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start
  return pattern.test(text) ? pattern.lastIndex : start
}

const endOfScalar = (text: string, start: number): number | undefined => {
  const end = skip(scalar, text, start)
  return end > start ? end : undefined
}

function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined
  let end = start + 1
  for (;;) {
    end = skip(plainCharacters, text, end)
    if (text[end] === '"') return end + 1
    const afterEscape = skip(escape, text, end)
    if (afterEscape === end) return undefined
    end = afterEscape
  }
}

function describe(expected: Expected, open: '{' | '[' | undefined): string {
  switch (expected) {
    case 'value':
      return 'a value'
    case 'first value':
      return "a value or ']'"
    case 'name':
      return 'a name in double quotes'
    case 'first name':
      return "a name in double quotes or '}'"
    case 'colon':
      return "':'"
    case 'comma':
      return open === '{' ? "',' or '}'" : "',' or ']'"
    case 'end':
      return 'the end of the file'
  }
}

function toLine(text: string, position: number): { line: number; column: number } {
  const lines = text.slice(0, position).split('\n')
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 }
}
