/** Where a parser of a pattern is. */
export type PatternReader = {
  readonly pattern: string
  at: number
  /** Follows the flags of the group that the parser is in. */
  isCaseless: boolean
  readonly groupNames: Set<string>
}

/** What one character of a pattern, an escape or a class stands for. */
export type CharacterNode =
  /** Matches no characters: `^`, `\b`, nothing at all. */
  | { kind: 'empty' }
  /** Matches no characters and depends on the end of the text. */
  | { kind: 'end' }
  | { kind: 'character'; text: string; isCaseless: boolean }
  /** One of several characters, the widest of which has this many units; `source` is how the pattern writes it. */
  | { kind: 'class'; units: number; source: string }

/** Thrown by the parser, and turned into a value at its edge. */
export class PatternProblem extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

const controlCharacters: Record<string, string> = {
  a: '\x07',
  f: '\f',
  t: '\t',
  n: '\n',
  r: '\r',
  v: '\v',
}
const generalCategory = /^(?:Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)$/

/** An escape outside of a class. */
export function readEscape(reader: PatternReader): CharacterNode {
  const start = reader.at
  const letter = reader.pattern.charAt(start + 1)
  if ('AbB'.includes(letter) && letter !== '') {
    reader.at += 2
    return { kind: 'empty' }
  }
  if (letter === 'z') {
    reader.at += 2
    return { kind: 'end' }
  }
  const units = readClassEscape(reader)
  if (units > 0) return { kind: 'class', units, source: reader.pattern.slice(start, reader.at) }
  return { kind: 'character', text: readCharacter(reader), isCaseless: reader.isCaseless }
}

/** `[...]`. */
export function readClass(reader: PatternReader): CharacterNode {
  const { pattern } = reader
  const start = reader.at
  reader.at++
  let units = 1
  if (pattern[reader.at] === '^') {
    units = 2
    reader.at++
  }
  for (let isFirst = true; isFirst || pattern[reader.at] !== ']'; isFirst = false) {
    if (reader.at >= pattern.length) throw new PatternProblem('missing ]', start)
    units = Math.max(units, readClassItem(reader))
  }
  reader.at++
  return { kind: 'class', units, source: pattern.slice(start, reader.at) }
}

/** A named class, a class escape, a character or a range; returns the units of its widest character. */
function readClassItem(reader: PatternReader): number {
  const { pattern } = reader
  const start = reader.at
  const [name] = /^\[:\^?[a-z]+:\]/.exec(pattern.slice(start)) ?? ['']
  if (name !== '') {
    reader.at += name.length
    return name.includes('^') ? 2 : 1
  }
  // The native engine would take this for the start of a named group and change it.
  if (pattern.startsWith('(?<', start)) throw new PatternProblem('write (?\\< in a class', start)
  const units = readClassEscape(reader)
  if (units > 0) return units
  const first = readCharacter(reader)
  if (pattern[reader.at] !== '-' || pattern[reader.at + 1] === ']') return first.length
  reader.at++
  const last = readCharacter(reader)
  if ((last.codePointAt(0) ?? 0) < (first.codePointAt(0) ?? 0)) {
    throw new PatternProblem('the range ends before it starts', start)
  }
  return last.length
}

/** `\d`, `\W`, `\pL`, `\p{Greek}` ...: the units of its widest character, 0 when something else stands here. */
function readClassEscape(reader: PatternReader): number {
  const start = reader.at
  const rest = reader.pattern.slice(start)
  if (/^\\[dsw]/.test(rest)) {
    reader.at += 2
    return 1
  }
  if (/^\\[DSW]/.test(rest)) {
    reader.at += 2
    return 2
  }
  if (!/^\\[pP]/.test(rest)) return 0
  const property = /^\\[pP](?:([A-Z])|\{\^?(\w+)\})/.exec(rest)
  const name = property?.[1] ?? property?.[2] ?? ''
  if (!property || !isKnownProperty(name))
    throw new PatternProblem('unknown character property', start)
  reader.at += property[0].length
  return 2
}

/** The native engine knows more properties than the other one; only general categories and scripts are common. */
function isKnownProperty(name: string): boolean {
  if (generalCategory.test(name)) return true
  try {
    return new RegExp(`\\p{Script=${name}}`, 'u') instanceof RegExp
  } catch {
    return false
  }
}

/** One character, written as itself or as an escape. */
function readCharacter(reader: PatternReader): string {
  const { pattern } = reader
  const start = reader.at
  const character = String.fromCodePoint(pattern.codePointAt(start) ?? 0)
  if (start >= pattern.length) throw new PatternProblem('the pattern ends too early', start)
  if (character !== '\\') {
    reader.at += character.length
    return character
  }
  const escaped = pattern.charAt(start + 1)
  if (escaped === '') throw new PatternProblem('the pattern ends with a backslash', start)
  if (/[1-9]/.test(escaped)) throw new PatternProblem('back-references are not supported', start)
  if (escaped === 'x') return readHexadecimal(reader)
  reader.at += 2
  const control = controlCharacters[escaped]
  if (control !== undefined) return control
  if (/[!-/:-@[-`{-~ ]/.test(escaped)) return escaped
  throw new PatternProblem(`the escape \\${escaped} is not supported`, start)
}

/** `\x41` or `\x{1F600}`. */
function readHexadecimal(reader: PatternReader): string {
  const start = reader.at
  const found = /^\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(reader.pattern.slice(start))
  const code = Number.parseInt(found?.[1] ?? found?.[2] ?? '', 16)
  if (!found || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    throw new PatternProblem('this is not the number of a character', start)
  }
  reader.at += found[0].length
  return String.fromCodePoint(code)
}
