/** Who says a text. */
export type SpeakerRole = 'system' | 'user' | 'assistant' | 'tool'

export type AskedText = {
  readonly role: SpeakerRole
  readonly text: string
  /** Where what is new begins, in UTF-16 units: what stands before it has left, and only says what it belongs to. */
  readonly newFrom?: number
}

/** What a guardrail is asked. */
export type GuardrailQuestion = {
  readonly id: string
  /** An administrator tries the guardrail: no call depends on what it says. */
  readonly isTest?: boolean
  readonly direction: 'request' | 'response'
  readonly organizationId: string
  /** Null for calls that belong to no project. */
  readonly projectId: string | null
  readonly requestId: string
  readonly model: string
  /** Whether nothing follows: always in requests, and in the last question about a text of an answer. */
  readonly isLast: boolean
  readonly texts: readonly AskedText[]
}

/** The body of the question, as docs/specification/guardrails.md describes it. */
export const writeGuardrailQuestion = (question: GuardrailQuestion): string =>
  JSON.stringify({
    id: question.id,
    ...(question.isTest && { is_test: true }),
    direction: question.direction,
    organization_id: question.organizationId,
    project_id: question.projectId,
    request_id: question.requestId,
    model: question.model,
    is_last: question.isLast,
    texts: question.texts.map(({ role, text, newFrom = 0 }, index) => ({
      index,
      role,
      text,
      new_from: countCodePoints(text, newFrom),
    })),
  })

/** Of the first `length` UTF-16 units. */
function countCodePoints(text: string, length: number): number {
  let count = 0
  for (let at = 0; at < length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count++
  return count
}
