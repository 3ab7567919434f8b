type Path = readonly PropertyKey[]

/** What is known about a JSON text besides its value. Lines start at 1. */
type ScannedJson = {
  /** The line where a value starts; for a missing member, the line where the object starts that should have it. */
  lineOf(path: Path): number
  /** Members that an object has more than once. `JSON.parse` would silently keep the last one. */
  repeated: readonly Path[]
  /** Where the text stops being JSON, if it does. */
  fault: { line: number; column: number } | undefined
}

const depthMax = 20
const space = /[ \t\n\r]*/y
const scalar = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
/** All but quotes, backslashes and control characters, or an escape. */
const string = /"(?:[\x20\x21\x23-\x5b\x5d-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y

/** Finds the lines of all values, for messages to the person who wrote them; nothing of the text is quoted. */
export function scanJson(text: string): ScannedJson {
  const starts = new Map<string, number>()
  const repeated: Path[] = []
  let position = 0

  /** Moves behind the pattern, and says whether it was there. */
  function take(pattern: RegExp): boolean {
    pattern.lastIndex = position
    if (!pattern.test(text)) return false
    position = pattern.lastIndex
    return true
  }
  function takeCharacter(character: string): boolean {
    take(space)
    if (text[position] !== character) return false
    position++
    return true
  }
  /** Each of these functions returns whether it has found what it is named after. */
  function value(path: Path): boolean {
    take(space)
    starts.set(keyOf(path), position)
    if (path.length > depthMax) return false
    if (takeCharacter('{')) return list('}', () => member(path))
    if (takeCharacter('[')) return list(']', (index) => value([...path, index]))
    return take(string) || take(scalar)
  }
  function list(end: string, item: (index: number) => boolean): boolean {
    if (takeCharacter(end)) return true
    for (let index = 0; item(index); index++) {
      if (takeCharacter(end)) return true
      if (!takeCharacter(',')) return false
    }
    return false
  }
  function member(object: Path): boolean {
    take(space)
    const start = position
    if (!take(string)) return false
    const path = [...object, JSON.parse(text.slice(start, position)) as string]
    if (starts.has(keyOf(path))) repeated.push(path)
    return takeCharacter(':') && value(path)
  }

  const isRead = value([])
  take(space)
  return {
    lineOf: (path) => placeOf(text, findStart(starts, path)).line,
    repeated,
    fault: isRead && position === text.length ? undefined : placeOf(text, position),
  }
}

const keyOf = (path: Path) => JSON.stringify(path.map(String))

const findStart = (starts: ReadonlyMap<string, number>, path: Path): number =>
  starts.get(keyOf(path)) ?? (path.length > 0 ? findStart(starts, path.slice(0, -1)) : 0)

function placeOf(text: string, position: number) {
  const lines = text.slice(0, position).split('\n')
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 }
}
