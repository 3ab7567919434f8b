import type { SpeakerRole } from '#moderation/guardrails/question.ts'
import type { TextEdit } from '#moderation/guardrails/text-edits.ts'
import { seamBetween } from '#text/passage.ts'

/**
 * A text of a request as a guardrail is asked about it, and what may become of it:
 * - `text`: any other text
 * - `name`: the name of a speaker, which may have only some characters
 * - `json`: the arguments of a tool call, which must stay JSON
 * - `sealed`: reasoning with a signature, which is sent as it is or left out
 */
export type BodyText = {
  readonly role: SpeakerRole
  readonly kind: 'text' | 'name' | 'json' | 'sealed'
  /** The strings of the request that its reader sees as one text. */
  readonly parts: readonly string[]
}

/** What is left of a text of which all is gone: providers refuse messages and parts without any. */
const emptied = '\u2026'

/** The parts as one text, as rules see them, with the place of each. */
function joinBodyParts(parts: readonly string[]) {
  const starts: number[] = []
  let text = ''
  for (const part of parts) {
    if (text !== '' && part !== '') text += seamBetween(text, part)
    starts.push(text.length)
    text += part
  }
  return { text, starts }
}

export const wholeOf = ({ parts }: BodyText): string => joinBodyParts(parts).text

/**
 * The parts with the edits of their whole text, which are in its order. The replacement of a stretch that is divided over parts
 * stands in the first of them. One of nothing but the seam between two parts stands at the end of the first.
 */
export function editParts(
  { parts }: Pick<BodyText, 'parts'>,
  edits: readonly TextEdit[],
): readonly string[] {
  const { text, starts } = joinBodyParts(parts)
  return parts.map((part, index) => {
    const start = starts[index] ?? 0
    const next = starts[index + 1] ?? text.length + 1
    const own = edits.filter((edit) => edit.start < next && edit.end > start)
    const written = editPart(part, start, own)
    return written.trim() === '' && part.trim() !== '' ? emptied : written
  })
}

function editPart(part: string, start: number, edits: readonly TextEdit[]): string {
  let written = ''
  let at = 0
  for (const edit of edits) {
    const from = Math.max(0, edit.start - start)
    written += part.slice(at, from)
    // The stretch began in the part before: its replacement stands there.
    if (edit.start >= start) written += edit.replacement
    at = Math.min(part.length, edit.end - start)
  }
  return written + part.slice(at)
}
