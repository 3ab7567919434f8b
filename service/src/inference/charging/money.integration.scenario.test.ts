import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { expect, test } from 'vitest'

import { createRandom } from '#testing/fault-proxy.ts'
import { priceOfUsage } from '#testing/plain-calls.ts'

import { type FailingCall, prepareFailingCalls, type Result } from './testing/failing-calls.ts'
import { failures } from './testing/failures.ts'

// Random failures of scorers, judges, upstreams and callers, against a model that says who has caused what: nothing that was
// delivered is free, and no caller pays for an answer that failed at the gateway or a provider.

const count = sizeOf({ usual: 150, long: 1000, variable: 'MONEY_FAILURES' })

const rules = {
  windows: 'Nobody may be rude.',
  /** Nothing leaves before the judge has seen all of it. */
  whole: 'when: !text.contains("zzzz")\nNobody may be rude.',
}

function draw(random: () => number, hold: keyof typeof rules): FailingCall {
  const below = (limit: number) => Math.floor(random() * limit)
  const failure = failures[below(failures.length)]!
  if (failure.isTooLong && hold === 'windows') return draw(random, hold)
  const isStreamed = random() < 0.6
  const model = isStreamed || failure.isOfStreams || random() < 0.5 ? 'streams' : 'm'
  const words = failure.isTooLong ? 120 : 20 + below(150)
  return { failure, isStreamed, model, words, failsAt: below(words) }
}

/** What is wrong with what a call was charged, if anything. */
function findFault({ failure }: FailingCall, result: Result): string | null {
  const { generated, delivered, isComplete, code, told, charge } = result
  if (delivered > 0 && charge === 0) return 'words were delivered free'
  if (isComplete) return charge === priceOfUsage ? null : 'another charge than was reported'
  if (told !== null && (told === 'charged') !== charge > 0) return 'the error says something else'
  if (delivered > 0 || failure.name === 'caller hangs up') return null
  if (failure.causedBy !== 'caller') return charge > 0 ? 'charged, and nothing delivered' : null
  const isJudged = code === 'policy_evaluation_unavailable' && generated > 0
  return isJudged && charge === 0 ? 'free, although the caller brought it about' : null
}

test(`${count} random failures are charged as the model says`, { timeout: 1_800_000 }, async () => {
  const seed = Number(process.env['MONEY_SEED'] ?? Date.now() % 2 ** 31)
  const random = createRandom(seed)
  const makers = {
    windows: await prepareFailingCalls(rules.windows),
    whole: await prepareFailingCalls(rules.whole),
  }
  const faults: object[] = []
  const ends: Record<string, number> = {}
  for (let made = 0; made < count; made++) {
    const hold = random() < 0.6 ? 'windows' : 'whole'
    const call = draw(random, hold)
    const result = await makers[hold](call)
    const fault = findFault(call, result)
    const { failure, ...asked } = call
    if (fault) faults.push({ made, fault, hold, failure: failure.name, ...asked, ...result })
    const end = result.isComplete
      ? 'complete'
      : `${result.delivered > 0 ? 'part' : 'nothing'} delivered, ${result.charge > 0 ? 'charged' : 'free'}`
    const key = `${failure.causedBy}: ${end}`
    ends[key] = (ends[key] ?? 0) + 1
  }
  console.log(`${count} calls from seed ${seed}: ${JSON.stringify(ends)}`)
  expect(faults, `MONEY_SEED=${seed}`).toEqual([])
})
