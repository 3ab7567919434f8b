import type { Json } from '#formats/answer.ts'
import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Said } from '#formats/texts/said.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { AskedText } from '#moderation/guardrails/question.ts'
import type { TextEdit } from '#moderation/guardrails/text-edits.ts'
import type { Steps } from '#platform/steps/steps.ts'

import { type BodyText, editParts, wholeOf } from './body-text.ts'
import { mapTexts } from './map-texts.ts'

/** The texts of a request as guardrails are asked about them. */
export type AskedRequest = {
  readonly texts: readonly AskedText[]
  /** The first of them are those that can be rewritten. */
  readonly editable: readonly BodyText[]
}

/**
 * All that a request says: what can be rewritten, in the order of the request, and then what only rules see besides, such as the
 * names of tools and the values in schemas.
 */
export function* readAskedRequest(body: Json, sent: RequestTexts): Steps<AskedRequest> {
  const editable: BodyText[] = []
  yield* mapTexts(body, (text) => {
    editable.push(text)
    return text.parts
  })
  const texts: AskedText[] = []
  const lines = new Set<string>()
  for (const text of editable) {
    const whole = wholeOf(text)
    texts.push({ role: text.role, text: whole })
    for (const part of [whole, ...text.parts]) for (const line of part.split('\n')) lines.add(line)
    yield
  }
  texts.push(...(yield* findOthers(sent, lines)))
  return { texts, editable }
}

/** One text of each role: most requests have a few short ones, and agents dozens. */
function* findOthers({ text }: RequestTexts, lines: ReadonlySet<string>): Steps<AskedText[]> {
  const found = { system: new Set<string>(), user: new Set<string>() }
  for (const { part, parts } of text) {
    for (const each of parts) {
      for (const line of each.split('\n')) if (!lines.has(line)) found[roleOf(part)].add(line)
    }
    yield
  }
  return (['system', 'user'] as const)
    .filter((role) => found[role].size > 0)
    .map((role) => ({ role, text: [...found[role]].join('\n') }))
}

const roleOf = (part: Said['part']) => (part === 'system' || part === 'tools' ? 'system' : 'user')

/** The body with these edits, one list for each text; throws a GuardrailFailure where it could not be sent. */
export function* rewriteRequest(
  body: Json,
  { editable }: AskedRequest,
  edits: readonly (readonly TextEdit[])[],
): Steps<Json> {
  if (edits.some((each, index) => each.length > 0 && index >= editable.length))
    throw new GuardrailFailure(
      'unwritable',
      'The guardrail wants something rewritten that is looked up or compared, and not said.',
    )
  let next = 0
  return yield* mapTexts(body, (text) => editParts(text, edits[next++] ?? []))
}
