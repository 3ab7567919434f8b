import { z } from 'zod'

import { explainIssue } from '#http/validate.ts'

import { GuardrailFailure } from './guardrail-failure.ts'
import { type TextEdit, toTextEdits } from './text-edits.ts'

/** What a guardrail has decided about the texts of a question. */
export type GuardrailDecision =
  | { readonly kind: 'allow'; readonly code: string | null }
  | { readonly kind: 'block'; readonly code: string | null; readonly reason: string | null }
  | {
      readonly kind: 'rewrite'
      readonly code: string | null
      /** One list for each text of the question, in their order; empty where a text stays as it is. */
      readonly edits: readonly (readonly TextEdit[])[]
    }

const spansMax = 1000

const Span = z.object({
  index: z.int().min(0),
  start: z.int().min(0),
  end: z.int().min(1),
  // Half of a pair would be joined with what stands beside it.
  replacement: z
    .string()
    .max(10_000)
    .refine((text) => text.isWellFormed(), { error: 'must be well-formed Unicode' }),
})

/** Members that are not known are left out: guardrails may log or forward their answers with more in them. */
const Reply = z.object({
  action: z.enum(['allow', 'block', 'rewrite']),
  /** It is part of the event, so it has no room for a text. */
  code: z
    .string()
    .regex(/^[A-Za-z0-9_.:-]{1,64}$/, { error: 'must be 1 to 64 letters, digits or _.:-' })
    .nullish(),
  /** For callers. They are shown its beginning. */
  reason: z.string().max(1000).nullish(),
  spans: z.array(Span).max(spansMax).nullish(),
})

/** Reads the body of an answer about these texts; throws a GuardrailFailure unless it is what the contract says. */
export function readReply(body: string, texts: readonly string[]): GuardrailDecision {
  const { action, code = null, reason = null, spans } = parseReply(body)
  if (action !== 'rewrite' && spans && spans.length > 0)
    throw malformed(`'spans' has no meaning with the action '${action}'`)
  if (action === 'allow') return { kind: 'allow', code }
  if (action === 'block') return { kind: 'block', code, reason: reason === '' ? null : reason }
  if (!spans || spans.length === 0) throw malformed("'spans' is required to rewrite")
  return { kind: 'rewrite', code, edits: toEdits(spans, texts) }
}

function parseReply(body: string): z.infer<typeof Reply> {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    throw malformed('it is not JSON')
  }
  const result = Reply.safeParse(json)
  if (result.success) return result.data
  const [issue] = result.error.issues
  if (!issue) throw malformed('it cannot be used')
  const { path, rule } = explainIssue(issue, json)
  throw malformed(`${nameOf(path)} ${rule}`)
}

/** Only names of the contract and numbers: an unknown member is no part of a path. */
const nameOf = (path: readonly PropertyKey[]): string =>
  path.length === 0
    ? 'it'
    : `'${path
        .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
        .join('')
        .slice(1)}'`

function toEdits(spans: readonly z.infer<typeof Span>[], texts: readonly string[]) {
  const byText = Map.groupBy(spans, ({ index }) => index)
  if (byText.keys().some((index) => index >= texts.length))
    throw malformed('a span is about a text that was not sent')
  return texts.map((text, index) => {
    const edits = toTextEdits(text, byText.get(index) ?? [])
    if (edits) return edits
    throw malformed(
      `a span of text ${index} is empty, overlaps another one, or ends outside the text`,
    )
  })
}

const malformed = (problem: string) =>
  new GuardrailFailure('malformed', `The answer of the guardrail breaks its contract: ${problem}.`)
