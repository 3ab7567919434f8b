import { decodeEscapes, hasEscape } from './escape-decoder.ts'

/** One text as its reader sees it. What was sent in parts is read joined. */
export type Passage = {
  readonly parts: readonly string[]
  /** The parts joined, in each way in which an upstream may join them; none where there is only one. */
  readonly wholes: readonly string[]
  /** Whether escapes are decoded in `wholes` already, as in an answer that was read while it grew. */
  readonly isDecoded?: boolean
}

const endsInSpace = /\p{White_Space}$/u
const startsWithSpace = /^\p{White_Space}/u

/** Parts that stand next to each other. */
export const joinParts = (parts: readonly string[]): Passage => joinMessages([parts])

/**
 * Messages of one role in a row, each with its parts. Some upstreams put a line break between parts or messages and others
 * nothing, so all ways are read. Where a part begins or ends in white space, they are the same.
 */
export function joinMessages(messages: readonly (readonly string[])[]): Passage {
  const parts = messages.flat().filter((part) => part !== '')
  if (parts.length < 2) return { parts, wholes: [] }
  const texts = messages.map((each) => each.join('')).filter((text) => text !== '')
  return { parts, wholes: [...new Set([joinApart(parts), joinApart(texts), parts.join('')])] }
}

const joinApart = (texts: readonly string[]) =>
  texts.reduce((text, next) => `${text}${seamBetween(text, next)}${next}`)

const seamBetween = (text: string, part: string) =>
  endsInSpace.test(text.slice(-1)) || startsWithSpace.test(part) ? '' : '\n'

export const toPassage = (text: string | Passage): Passage =>
  typeof text === 'string' ? { parts: [text], wholes: [] } : text

/** The passage as one text, in every way in which it can be read as a whole: joined, and with its escapes decoded. */
export function wholesOf({ parts, wholes }: Passage): string[] {
  const whole = wholes.length > 0 ? wholes : parts
  return [...whole, ...whole.filter(hasEscape).map(decodeEscapes)]
}

/** The ways to read a passage besides its parts one by one. What is found in them only adds to what the parts say. */
export function otherReadings({ parts, wholes, isDecoded }: Passage): readonly string[] {
  if (isDecoded) return wholes
  const whole = wholes.length > 0 ? wholes : parts
  return [...wholes, ...whole.filter(hasEscape).map(decodeEscapes)]
}

/** Every way to read a passage. */
export const readingsOf = (passage: Passage): string[] => [
  ...passage.parts,
  ...otherReadings(passage),
]

/** The passage as a person would copy it. */
export const textOf = ({ parts, wholes }: Passage): string => wholes[0] ?? parts[0] ?? ''
