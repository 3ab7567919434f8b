import { z } from 'zod'

/** The numbered event of a call, as the log has it. */
export type CallEvent = {
  organizationId: string
  at: Date
  header: Record<string, unknown>
  /** Null if it was erased. */
  payload: Buffer | null
}

export type StatusClass = '2xx' | '4xx' | '5xx' | 'none'

/** What the sums need to know of a call. An empty text: it has none. */
export type CallFact = {
  organizationId: string
  at: Date
  projectId: string
  model: string
  keyId: string
  outcome: string
  statusClass: StatusClass
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  credits: number
  durationMs: number | null
  firstTokenMs: number | null
}

/** What an event cannot say is 0 or null: an event that was written by another release must not stop the sums. */
const Whole = z.int().min(0).catch(0)
const Ms = z.int().min(0).nullable().catch(null)
const Usage = z.object({
  input_tokens: Whole,
  cached_input_tokens: Whole,
  output_tokens: Whole,
  credits: Whole,
})
const Payload = z.object({
  usage: Usage.catch(() => Usage.parse({})),
  duration_ms: Ms,
  first_token_ms: Ms,
  status: z.int().nullable().catch(null),
})

export function readCallFact({ organizationId, at, header, payload }: CallEvent): CallFact {
  const { usage, ...said } = Payload.parse(parse(payload))
  const outcome = textOf(header['outcome'])
  const status = typeof header['status'] === 'number' ? header['status'] : said.status
  return {
    organizationId,
    at,
    projectId: textOf(header['project_id']),
    model: textOf(header['model']),
    keyId: textOf(header['actor']),
    outcome,
    statusClass: statusClassOf(status ?? (answered.has(outcome) ? 200 : null)),
    inputTokens: usage.input_tokens,
    cachedInputTokens: usage.cached_input_tokens,
    outputTokens: usage.output_tokens,
    credits: usage.credits,
    durationMs: said.duration_ms,
    firstTokenMs: said.first_token_ms,
  }
}

/** The outcomes of calls that were answered with 200 unless their event has a status: a blocked call may get a replacement. */
const answered: ReadonlySet<string> = new Set(['completed', 'blocked'])

function statusClassOf(status: number | null): StatusClass {
  if (status === null) return 'none'
  if (status >= 500) return '5xx'
  return status >= 400 ? '4xx' : '2xx'
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

function parse(payload: Buffer | null): object {
  try {
    const value: unknown = JSON.parse(payload?.toString() ?? '{}')
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
