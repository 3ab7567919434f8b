import { breakTemplateTokens } from '#moderation/template-tokens.ts'

const tokenStartOrLineEnd = /<|\[(?=\/?[A-Z])|[\u007f-\u009f\u2028\u2029]/g
const lineEnd = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/

/**
 * A text as a JSON string on one line, without tokens of chat templates. `JSON.parse` gives back every character. No text can
 * end its line, so none can forge the line that marks the end of the content.
 */
export const encodeData = (text: string): string =>
  JSON.stringify(text).replace(tokenStartOrLineEnd, escapeCharacter)

const escapeCharacter = (character: string) =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Every line begins with the number of its rule, so that a rule cannot forge a line of another rule, nor one after the rules. */
export const quoteRule = (number: number, text: string): string =>
  text
    .split(lineEnd)
    .map((line) => `${number}| ${breakTemplateTokens(line)}`)
    .join('\n')

/** At most `most` characters from the end, without half a surrogate pair. */
export function lastCharacters(text: string, max: number): string {
  if (text.length <= max) return text
  const start = text.length - max
  return text.slice(isInsidePair(text, start) ? start + 1 : start)
}

/** Whether a cut here would separate the two halves of a character. */
export const isInsidePair = (text: string, at: number): boolean =>
  at > 0 && (text.codePointAt(at - 1) ?? 0) > 0xffff
