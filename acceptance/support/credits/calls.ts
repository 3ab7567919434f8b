import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { pathOf, type Format, formats, bodyOf } from '#support/streams/call.ts'

// The calls of the crash test. No organization uses a model twice, so organization and model identify a call in the
// logs of the client, the upstream and the ledger, however little else they have in common.

export type Organization = { id: string; key: string; isPoor: boolean }

/** Identifies a call in all three logs. */
export const nameOf = (organizationId: string, model: string) => `${organizationId}/${model}`

export type PlannedCall = {
  organization: Organization
  model: string
  format: Format
  isStreamed: boolean
  script: Script
  /** The client hangs up after this many milliseconds, whatever it has received by then. */
  hangsUpAtMs: number | null
}

/** The prices of the test's models: whole credits per token, so that no amount is rounded. */
export const creditsPerToken = { input: 3, output: 15 }

const outputMax = 600
/** Output tokens far beyond the hold: what the balance does not cover is written off. */
const overrun = 4000

/** How long an upstream may take; the hold of a dead process lasts this long plus the grace period. */
const upstreamMaxMs = 5000

const upstreamKinds = {
  messages: { kind: 'anthropic' },
  chat: { kind: 'openai', protocols: ['chat_completions'] },
  responses: { kind: 'openai', protocols: ['responses'] },
} as const satisfies Record<Format, object>

const modelOf = (number: number) => `crash-${number}`

/** A catalogue with this many models, whose upstreams alternate between the formats. */
export const crashModels = (url: string, count: number) => ({
  upstreams: Object.fromEntries(
    formats.map((format) => [
      format,
      {
        ...upstreamKinds[format],
        base_url: `${url}/v1`,
        key: { env: 'UPSTREAM_KEY' },
        total_timeout_ms: upstreamMaxMs,
      },
    ]),
  ),
  models: Array.from({ length: count }, (_, number) => ({
    id: modelOf(number),
    context_tokens: 100_000,
    max_output_tokens: 10_000,
    default_output_tokens: outputMax,
    // A caller who hangs up pays for what was shown, which is known here, and not for time.
    capabilities: { reasoning: false },
    prices: {
      input: String(creditsPerToken.input),
      output: String(creditsPerToken.output),
    },
    upstreams: [{ upstream: formats[number % formats.length] }],
  })),
})

type Random = (below: number) => number

/** Mulberry32: the same seed plans the same calls. */
export function createRandom(seed: number): Random {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Returns a function that plans the next call; it throws when an organization has used every model. */
export function createPlanner(
  organizations: readonly Organization[],
  models: number,
  random: Random,
) {
  const made = new Map<string, number>()
  return (): PlannedCall => {
    const organization = organizations[random(organizations.length)]!
    const number = made.get(organization.id) ?? 0
    if (number >= models) throw new Error('There are not enough models for so many calls.')
    made.set(organization.id, number + 1)
    const isStreamed = random(10) < 6
    const tokens = 5 + random(25)
    const model = modelOf(number)
    return {
      organization,
      model,
      isStreamed,
      format: formats[random(formats.length)]!,
      script: { key: nameOf(organization.id, model), ...scriptOf(number, tokens, random) },
      hangsUpAtMs: random(10) === 0 ? 20 + random(tokens * 10) : null,
    }
  }
}

/** The reported usage differs from call to call, so that a charge for another call's tokens is noticed. */
function scriptOf(number: number, tokens: number, random: Random): Script {
  if (random(40) === 0) return { error: { status: 400 } }
  const isOverrun = random(12) === 0
  const output = 10 + (number % (outputMax - 10)) + (isOverrun ? overrun : 0)
  const usage = { input: 20 + random(400), output }
  const paceMs = random(3) === 0 ? 30 + random(40) : random(12)
  return { tokens, paceMs, usage, headMs: random(4) === 0 ? random(300) : 0 }
}

/** The path and the body of a planned call. */
export function messageOf({ format, model, script, isStreamed }: PlannedCall) {
  const limit = format === 'messages' ? { max_tokens: outputMax } : {}
  const body = bodyOf({ format, model, script, isStreamed, body: limit })
  return { path: pathOf[format], payload: JSON.stringify(body) }
}
