/** A condition on an answer, of the kinds that a growing text decides. */
export type Condition =
  | { kind: 'pattern'; pattern: string }
  | { kind: 'literal'; literal: string }
  | { kind: 'size'; atLeast: number }
  | { kind: 'and' | 'or'; parts: readonly Condition[] }

/** A place in the texts of an answer, which come one after another. The offset is one of the normalised text. */
export type Place = { channel: number; offset: number }

/** The condition as an expression of a rule. */
export function say(condition: Condition): string {
  switch (condition.kind) {
    case 'pattern':
      return `text.matches(${JSON.stringify(condition.pattern)})`
    case 'literal':
      return `text.contains(${JSON.stringify(condition.literal)})`
    case 'size':
      return `text.size() >= ${condition.atLeast}`
    case 'and':
      return `(${condition.parts.map(say).join(' && ')})`
    case 'or':
      return `(${condition.parts.map(say).join(' || ')})`
  }
}

/** What rules see of a text. */
export const normalise = (text: string) =>
  text
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/gu, '')
    .normalize('NFKC')
    .replaceAll(/\p{White_Space}+/gu, ' ')

/** Where the last match begins that the condition needs; null where it is not true. */
export function findCut(condition: Condition, channels: readonly string[]): Place | null {
  const texts = channels.map(normalise)
  switch (condition.kind) {
    case 'pattern':
      return firstIn(texts, (text) => text.search(toRegExp(condition.pattern)))
    case 'literal':
      return firstIn(texts, (text) => text.indexOf(normalise(condition.literal)))
    case 'size':
      return findSize(condition.atLeast, texts)
    case 'and':
    case 'or':
  }
  const cuts = condition.parts.map((part) => findCut(part, channels))
  const found = cuts
    .filter((cut) => cut !== null)
    .toSorted((one, other) => one.channel - other.channel || one.offset - other.offset)
  if (condition.kind === 'or') return found[0] ?? null
  return found.length === cuts.length ? (found.at(-1) ?? null) : null
}

const toRegExp = (pattern: string) =>
  pattern.startsWith('(?i)') ? new RegExp(pattern.slice(4), 'iu') : new RegExp(pattern, 'u')

function firstIn(texts: readonly string[], find: (text: string) => number): Place | null {
  const offsets = texts.map(find)
  const channel = offsets.findIndex((offset) => offset !== -1)
  return channel === -1 ? null : { channel, offset: offsets[channel] ?? 0 }
}

function findSize(atLeast: number, texts: readonly string[]): Place | null {
  let count = 0
  for (const [channel, text] of texts.entries()) {
    let offset = 0
    for (const character of text) {
      count++
      if (count === atLeast) return { channel, offset }
      offset += character.length
    }
  }
  return null
}
