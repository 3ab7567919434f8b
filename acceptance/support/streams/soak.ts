import { setTimeout as sleep } from 'node:timers/promises'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'

import { type Answer, begin, formats, type Target } from './call.ts'

// A separate process that keeps many streams open, hangs up on some of them, and reports those that did not end as
// planned. The same seed plans the same streams.

export type Soak = {
  baseUrls: string[]
  keys: string[]
  streams: number
  seconds: number
  seed: number
}
export type SoakReport = { wrong: string[]; kinds: Record<string, number> }

const kinds = ['whole', 'hung up', 'error', 'close', 'malformed', 'failing'] as const
type Kind = (typeof kinds)[number]
/** How twenty streams are distributed over the kinds. */
const shares: readonly Kind[] = [
  ...Array.from({ length: 12 }, () => 'whole' as const),
  ...(['hung up', 'hung up', 'hung up', 'hung up'] as const),
  ...(['error', 'close', 'malformed', 'failing'] as const),
]

function createRandom(seed: number) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A process that has so few calls to admit at a time never refuses one, however slow the machine is. */
const startingMax = 16

/** Limits how many calls are being started at a time; the next one begins when one of them has started. */
function createDoor(places: number) {
  const waiting: (() => void)[] = []
  let free = places
  return {
    async enter() {
      if (free > 0) free--
      else await new Promise<void>((resolve) => waiting.push(resolve))
    },
    leave() {
      const next = waiting.shift()
      if (next) next()
      else free++
    },
  }
}
const door = createDoor(startingMax)

type Plan = { kind: Kind; afterSeconds: number; target: Target; index: number }

function scriptOf({ kind, afterSeconds }: Plan, seconds: number): Script {
  const steady = { tokens: seconds, paceMs: 1000 }
  const after = { pieces: Math.max(1, Math.floor(afterSeconds)) }
  switch (kind) {
    case 'error':
      return { ...steady, errorAfter: after }
    case 'close':
      return { ...steady, closeAfter: after }
    case 'malformed':
      return { ...steady, malformedAfter: after }
    case 'failing':
      return { error: { status: 500 } }
    default:
      return steady
  }
}

const ends = /message_stop|\[DONE\]|response\.completed/
const failures = /event: error\n|event: response\.failed\n|data: \{"error":/

function isAsPlanned(kind: Kind, { status, text, isBroken }: Answer): boolean {
  if (kind === 'hung up') return status === 200
  if (kind === 'failing') return [502, 503, 529].includes(status)
  if (status !== 200 || isBroken) return false
  return kind === 'whole' ? ends.test(text) : failures.test(text) && !ends.test(text)
}

async function runOne(plan: Plan, seconds: number): Promise<string | undefined> {
  const { kind, afterSeconds, target, index } = plan
  const format = formats[index % formats.length] ?? 'chat'
  const model = `${kind === 'failing' ? 'failing' : 'steady'}-${format}`
  await door.enter()
  const call = begin(target, { format, model, script: scriptOf(plan, seconds) })
  const hangUp = kind === 'hung up' ? setTimeout(call.hangUp, afterSeconds * 1000) : undefined
  call.responseStarted.then(door.leave, door.leave)
  const answer = await call.answer.catch((error: unknown) => error as Error)
  clearTimeout(hangUp)
  // A caller that hangs up before the response headers gets no answer.
  if (answer instanceof Error) return kind === 'hung up' ? undefined : `${kind}: ${answer.message}`
  return isAsPlanned(kind, answer)
    ? undefined
    : `${kind} ${format}: ${answer.status} ${answer.isBroken} ...${answer.text.slice(-300)}`
}

async function soak({ baseUrls, keys, streams, seconds, seed }: Soak): Promise<SoakReport> {
  const random = createRandom(seed)
  const counts: Record<string, number> = {}
  const plans = Array.from({ length: streams }, (_, index): Plan => {
    const kind = shares[Math.floor(random() * shares.length)] ?? 'whole'
    counts[kind] = (counts[kind] ?? 0) + 1
    const baseUrl = baseUrls[index % baseUrls.length] ?? ''
    const target = { baseUrl, credential: keys[index % keys.length] ?? '' }
    return { kind, afterSeconds: random() * (seconds - 1), target, index }
  })
  const ended = await Promise.all(
    plans.map(async (plan) => {
      await sleep(plan.index * 6)
      return runOne(plan, seconds)
    }),
  )
  return { wrong: ended.filter((each) => each !== undefined), kinds: counts }
}

process.on('message', (message) => {
  soak(message as Soak).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ wrong: [String(error)], kinds: {} }),
  )
})
process.on('disconnect', () => process.exit(0))
