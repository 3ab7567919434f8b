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

/**
 * Parts that stand next to each other. Some upstreams put a line break between them and others nothing, so both ways are
 * read. Where a part begins or ends in white space, they are the same.
 */
export function joinParts(given: readonly string[]): Passage {
  const parts = given.filter((part) => part !== '')
  if (parts.length < 2) return { parts, wholes: [] }
  const apart = parts.reduce((text, part) => `${text}${seamBetween(text, part)}${part}`)
  const seamless = parts.join('')
  return { parts, wholes: apart === seamless ? [apart] : [apart, seamless] }
}

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
