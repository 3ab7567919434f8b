type Path = readonly PropertyKey[]

/** Lines and columns start at 1. */
type Place = { line: number; column: number }

/** What is known of a JSON text beside its value. */
type ScannedJson = {
  /** Where a value starts. Of a member that does not exist: where the object starts that should have it. */
  lineOf(path: Path): number
  /** Members that an object has more than once: `JSON.parse` would keep the last one without a word. */
  repeated: readonly Path[]
  /** Where the text stops being JSON, if it does. */
  fault: Place | undefined
  /** What should stand there. */
  expected: string
}

const depthMax = 20

/** Finds the lines of all values, for messages to the person who wrote them; nothing of the text is quoted. */
export function scanJson(text: string): ScannedJson {
  const starts = new Map<string, number>()
  const repeated: Path[] = []
  const { position, isWhole, expected } = readJson(text, {
    depthMax,
    onValue(path, start) {
      const key = keyOf(path)
      if (typeof path.at(-1) === 'string' && starts.has(key)) repeated.push(path)
      starts.set(key, start)
    },
  })
  return {
    lineOf: (path) => placeOf(text, findStart(starts, path)).line,
    repeated,
    fault: isWhole ? undefined : placeOf(text, position),
    expected,
  }
}

/**
 * Finds the first fault in a text that `JSON.parse` has refused: its own message often has no position, and
 * quotes the text, which may hold a secret.
 */
export function findJsonFault(text: string): Place & { expected: string } {
  const { position, expected } = readJson(text, { depthMax: Infinity })
  return { ...placeOf(text, position), expected }
}

const keyOf = (path: Path) => JSON.stringify(path.map(String))

const findStart = (starts: ReadonlyMap<string, number>, path: Path): number =>
  starts.get(keyOf(path)) ?? (path.length > 0 ? findStart(starts, path.slice(0, -1)) : 0)

function placeOf(text: string, position: number): Place {
  const lines = text.slice(0, position).split('\n')
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 }
}

type Reading = { depthMax: number; onValue?: (path: Path, start: number) => void }
type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma' | 'end'
/** An object or a list that has not ended, and the member or item of it that is being read. */
type Container = { isObject: boolean; at: string | number }

/** Reads tokens until the end or until one that is not expected. Neither long strings nor deep nesting exhaust the stack. */
function readJson(text: string, { depthMax, onValue }: Reading) {
  const open: Container[] = []
  let expected: Expected = 'value'
  let position = skip(space, text, 0)

  const close = (): Expected => {
    open.pop()
    return open.length > 0 ? 'comma' : 'end'
  }
  function readName(container: Container): Token | undefined {
    const end = endOfString(text, position)
    if (end === undefined) return undefined
    if (onValue) container.at = JSON.parse(text.slice(position, end)) as string
    return { end, next: 'colon' }
  }
  function readValue(character: string): Token | undefined {
    if (open.length > depthMax) return undefined
    onValue?.(
      open.map(({ at }) => at),
      position,
    )
    if (character === '{' || character === '[') {
      const isObject = character === '{'
      open.push({ isObject, at: 0 })
      return { end: position + 1, next: isObject ? 'first name' : 'first value' }
    }
    const end = endOfString(text, position) ?? endOfScalar(text, position)
    return end === undefined ? undefined : { end, next: open.length > 0 ? 'comma' : 'end' }
  }
  function readComma(character: string, container: Container): Token | undefined {
    const { isObject, at } = container
    if (character === (isObject ? '}' : ']')) return { end: position + 1, next: close() }
    if (character !== ',') return undefined
    if (typeof at === 'number') container.at = at + 1
    return { end: position + 1, next: isObject ? 'name' : 'value' }
  }
  /** The token at `position`. Undefined: it is not an expected one. */
  function readToken(character: string): Token | undefined {
    const after = (next: Expected): Token => ({ end: position + 1, next })
    const container = open.at(-1)
    if (expected === 'first name' && character === '}') return after(close())
    if (expected === 'first value' && character === ']') return after(close())
    if (expected === 'value' || expected === 'first value') return readValue(character)
    if (expected === 'colon') return character === ':' ? after('value') : undefined
    if (!container) return undefined
    return expected === 'comma' ? readComma(character, container) : readName(container)
  }

  while (position < text.length) {
    const token = readToken(text.charAt(position))
    if (!token) break
    expected = token.next
    position = skip(space, text, token.end)
  }
  const isTooDeep = open.length > depthMax
  return {
    position,
    isWhole: expected === 'end' && position === text.length,
    expected: isTooDeep
      ? `no more than ${depthMax} values inside each other`
      : describe(expected, text[position], open.at(-1)),
  }
}

type Token = { end: number; next: Expected }

const space = /[ \t\n\r]*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** All but quotes, backslashes and control characters. */
const plainCharacters = /[\x20\x21\x23-\x5b\x5d-\uffff]*/y
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

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

const expectations: Record<Exclude<Expected, 'comma'>, string> = {
  value: 'a value',
  'first value': "a value or ']'",
  name: 'a name in double quotes',
  'first name': "a name in double quotes or '}'",
  colon: "':'",
  end: 'the end of the file',
}
const mayBeString: ReadonlySet<Expected> = new Set(['value', 'first value', 'name', 'first name'])

function describe(
  expected: Expected,
  found: string | undefined,
  container: Container | undefined,
): string {
  if (found === '"' && mayBeString.has(expected))
    return 'a string that ends on its line, with valid escapes'
  if (expected === 'comma') return container?.isObject ? "',' or '}'" : "',' or ']'"
  return expectations[expected]
}
