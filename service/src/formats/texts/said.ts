import { joinParts, type Passage } from '#text/passage.ts'

/** Where in a request something was said. */
export type SaidIn = 'system' | 'user' | 'tool_result' | 'document' | 'tools' | 'prefill'

/** Something that the caller sends; `message` is its place in the turn, null outside of messages. */
export type Said = Passage & { readonly part: SaidIn; readonly message: number | null }

export const saidIn = (part: SaidIn, message: number | null, parts: readonly string[]): Said[] =>
  toSaid(part, message, joinParts(parts))

/** None where nothing is said. */
export const toSaid = (part: SaidIn, message: number | null, passage: Passage): Said[] =>
  passage.parts.length === 0 ? [] : [{ ...passage, part, message }]
