import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { pathOf, type Format, formats, bodyOf } from './stream-call.ts'

// The calls of the crash test. Each has a model that its organization never uses again: by it the client's
// log, the upstream's and the ledger are joined, however little of a call is known to each of them.

export type Organization = { id: string; key: string; isPoor: boolean }

/** The name of a call in all three logs. */
export const nameOf = (organizationId: string, model: string) => `${organizationId}/${model}`

export type PlannedCall = {
  organization: Organization
  model: string
  format: Format
  isStreamed: boolean
  script: Script
  /** Whoever calls hangs up at this many milliseconds, whatever has come until then. */
  hangsUpAtMs: number | null
}

/** What the test's models cost: credits per token, so that amounts are whole by themselves. */
export const creditsPerToken = { input: 3, output: 15 }

const outputMax = 600
/** Far more than was held for it: what the balance does not cover is written off. */
const overrun = 4000

/** How long an upstream may take: with the grace it is how long the hold of a dead process lasts. */
const upstreamMaxMs = 5000

const speech = {
  messages: { kind: 'anthropic' },
  chat: { kind: 'openai', protocols: ['chat_completions'] },
  responses: { kind: 'openai', protocols: ['responses'] },
} as const satisfies Record<Format, object>

const modelOf = (number: number) => `crash-${number}`

/** A catalogue with this many models; the upstream's format changes from one to the next. */
export const crashModels = (url: string, count: number) => ({
  upstreams: Object.fromEntries(
    formats.map((format) => [
      format,
      {
        ...{ ...speech[format], base_url: `${url}/v1`, key: { env: 'UPSTREAM_KEY' } },
        total_timeout_ms: upstreamMaxMs,
      },
    ]),
  ),
  models: Array.from({ length: count }, (_, number) => ({
    ...{ id: modelOf(number), context_tokens: 100_000, max_output_tokens: 10_000 },
    default_output_tokens: outputMax,
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

/** Plans one call after the other, until an organization would need a model twice. */
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
      ...{ organization, model, isStreamed },
      format: formats[random(formats.length)]!,
      script: { key: nameOf(organization.id, model), ...scriptOf(number, tokens, random) },
      hangsUpAtMs: random(10) === 0 ? 20 + random(tokens * 10) : null,
    }
  }
}

/** What the upstream reports differs from call to call: a charge for another call's tokens shows. */
function scriptOf(number: number, tokens: number, random: Random): Script {
  if (random(40) === 0) return { error: { status: 400 } }
  const isOverrun = random(12) === 0
  const output = 10 + (number % (outputMax - 10)) + (isOverrun ? overrun : 0)
  const usage = { input: 20 + random(400), output }
  const paceMs = random(3) === 0 ? 30 + random(40) : random(12)
  return { tokens, paceMs, usage, headMs: random(4) === 0 ? random(300) : 0 }
}

/** What is sent for it. */
export function messageOf({ format, model, script, isStreamed }: PlannedCall) {
  const limit = format === 'messages' ? { max_tokens: outputMax } : {}
  const body = bodyOf({ format, model, script, isStreamed, body: limit })
  return { path: pathOf[format], payload: JSON.stringify(body) }
}
