import type { UpstreamComplaint } from '#formats/format.ts'

/** Longer messages are cut before they are checked. Hardly any message is longer. */
const messageMost = 2000
/** A longer type, code or parameter is ignored. */
const wordMost = 200

/** Shortens a message and its words to a length that can always be checked. */
export function boundWords({ message, type, code, param }: UpstreamComplaint): UpstreamComplaint {
  return compose(cutText(message, messageMost), [type, code, param].map(boundWord))
}

/** At most `most` characters from the start, without half of a surrogate pair at the end. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  const isHalf = last >= 0xd800 && last <= 0xdbff
  return text.slice(0, Math.max(0, most - (isHalf ? 1 : 0)))
}

/** Only what clients act on, such as `context_length_exceeded`, and nothing that could be a sentence. */
export const onlyNames = ({ type, code, param }: UpstreamComplaint): UpstreamComplaint =>
  compose('', [type, code, param].map(nameOrNull))

/** Everything that was said as one text; empty if nothing was. */
export const wordsOf = ({ message, type, code, param }: UpstreamComplaint): string =>
  [message, type, code, param].filter(Boolean).join('\n')

const boundWord = (word: string | null | undefined) =>
  word && word.length <= wordMost ? word : null

const nameOrNull = (word: string | null | undefined) =>
  word && /^[\w.[\]-]{1,100}$/.test(word) ? word : null

function compose(
  message: string,
  [type = null, code = null, param = null]: readonly (string | null)[],
): UpstreamComplaint {
  return { message, type, code, ...(param !== null && { param }) }
}
