import { finish, type Steps } from '#platform/steps/steps.ts'

import { decodeEscapes, hasEscape } from './escape-decoder.ts'

/** One text as its reader sees it. What was sent in parts is read joined. */
export type Passage = {
  readonly parts: readonly string[]
  /** The parts joined, in each way in which an upstream may join them; none where there is only one. */
  readonly wholes: readonly string[]
  /** Whether escapes are decoded in `wholes` already, as in an answer that was read while it grew. */
  readonly isDecoded?: boolean
  /** Whether it repeats words of other passages: then neither its size nor its personal data count. */
  readonly isRepeated?: boolean
}

/** A longer text is never checked, so it need not be decoded. */
const decodedMost = 4 * 1024 * 1024

const canDecode = (text: string) => text.length <= decodedMost && hasEscape(text)

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

/** One by one: a request may have a hundred thousand parts. */
function joinApart(texts: readonly string[]): string {
  const pieces: string[] = []
  for (const [index, text] of texts.entries()) {
    if (index > 0) pieces.push(seamBetween(texts[index - 1] ?? '', text))
    pieces.push(text)
  }
  return pieces.join('')
}

/** What may stand between two parts that are read as one text. */
export const seamBetween = (text: string, part: string) =>
  endsInSpace.test(text.slice(-1)) || startsWithSpace.test(part) ? '' : '\n'

export const toPassage = (text: string | Passage): Passage =>
  typeof text === 'string' ? { parts: [text], wholes: [] } : text

/** The parts and the wholes of a passage with their escapes decoded, as far as they have any. */
type Decoded = { readonly parts: readonly string[]; readonly wholes: readonly string[] }
const nothing: Decoded = { parts: [], wholes: [] }

/** Several look at the passages of a call, and decoding takes long. */
const known = new WeakMap<Passage, Decoded>()

/**
 * Decodes the escapes of a passage, unless that was done before. Its readings are then available at once; without
 * this, all of them are made in one step.
 */
export function* decodePassage(passage: Passage): Steps<Decoded> {
  if (!hasEscapes(passage)) return nothing
  const done = known.get(passage)
  if (done) return done
  const decoded = { parts: new Array<string>(), wholes: new Array<string>() }
  for (const name of ['parts', 'wholes'] as const) {
    for (const text of passage[name]) {
      if (!canDecode(text)) continue
      decoded[name].push(yield* decodeEscapes(text))
      yield
    }
  }
  known.set(passage, decoded)
  return decoded
}

/** Most passages have none, and every call asks several times. */
const hasEscapes = ({ parts, wholes }: Passage): boolean =>
  parts.some(canDecode) || wholes.some(canDecode)

const decodedOf = (passage: Passage): Decoded =>
  hasEscapes(passage) ? finish(decodePassage(passage)) : nothing

/** The passage as one text, in every way in which it can be read as a whole: joined, and with its escapes decoded. */
export function wholesOf(passage: Passage): string[] {
  const name = passage.wholes.length > 0 ? 'wholes' : 'parts'
  return [...passage[name], ...decodedOf(passage)[name]]
}

/** The ways to read a passage besides its parts one by one. What is found in them only adds to what the parts say. */
export function otherReadings(passage: Passage): readonly string[] {
  const { wholes, isDecoded } = passage
  if (isDecoded) return wholes
  const decoded = decodedOf(passage)
  return [...wholes, ...decoded.parts, ...decoded.wholes]
}

/** Every way to read a passage. */
export const readingsOf = (passage: Passage): string[] => [
  ...passage.parts,
  ...otherReadings(passage),
]

/** The passage as a person would copy it. */
export const textOf = ({ parts, wholes }: Passage): string => wholes[0] ?? parts[0] ?? ''
