import { buildCallEvent, type CallOutcome, type Event } from '#audit/event.ts'

type Random = (below: number) => number

/** Small numbers from a seed, the same in every run. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const outcomes: readonly CallOutcome[] = [
  'completed',
  'completed',
  'completed',
  'cut',
  'failed',
  'refused',
  'blocked',
  'unknown',
]
const statuses = [400, 402, 403, 404, 413, 503]

/** The event of a call of one of these organizations, within the two days before `now`. */
export function createRandomCall(
  random: Random,
  organizationIds: readonly string[],
  now: Date,
): Event {
  const outcome = outcomes[random(outcomes.length)] ?? 'completed'
  const status = statuses[random(statuses.length)] ?? 400
  const isTimed = outcome !== 'unknown'
  const at = new Date(now.getTime() - random(2 * 24 * 60 * 60 * 1000))
  return buildCallEvent(
    {
      organizationId: organizationIds[random(organizationIds.length)] ?? '',
      requestId: `req_${random(2 ** 31)}`,
      projectId: random(10) === 0 ? null : `proj_${random(4)}`,
      actor: `key_${random(20)}`,
      actorType: 'project_key',
      model: outcome === 'refused' && random(2) === 0 ? null : `model-${random(3)}`,
      target: 'messages',
      outcome,
      ...(outcome === 'refused' && { refusal: { status, code: 'invalid_request' } }),
      ...(outcome === 'failed' && { status: 502 }),
      usage:
        outcome === 'refused'
          ? { credits: 0 }
          : {
              input_tokens: random(5000),
              cached_input_tokens: random(100),
              output_tokens: random(900),
              credits: random(100_000),
            },
      policies: null,
      ...(isTimed && { durationMs: random(1 + 2 ** random(18)) }),
      ...(isTimed && random(2) === 0 && { firstTokenMs: random(1 + 2 ** random(13)) }),
    },
    at,
  )
}
