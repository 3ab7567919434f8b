import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { ScriptUsage } from '@gatehouse/tools/scripted-upstream/script'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { stackModels } from '@gatehouse/tools/stack-models'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { readCredits } from '#testing/credit-calls.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

// Whatever usage an upstream reports, a call costs a whole number of credits between nothing and its hold, and the
// receipt, the ledger and the balance say the same.

const granted = 20_000_000n
const outputMax = 100
/** The prices of the stack's models, in credits for a token. */
const [inputPrice, outputPrice] = [3, 15]
/** A hold is the price of all the output that the call may produce, and of a few tokens of input. */
const holdMin = outputMax * outputPrice
const holdMax = holdMin + 500
/** A few tokens of input and output, counted by the service. */
const countedMax = 250

const few = { input: 10, output: 5 }
const priceOfFew = few.input * inputPrice + few.output * outputPrice
/** The lowest and the highest charge. */
type Range = readonly [least: number, most: number]
const believed: Range = [priceOfFew, priceOfFew]
const countedHere: Range = [1, countedMax]
const theHold: Range = [holdMin, holdMax]

const reported: readonly [what: string, usage: ScriptUsage, charge: Range][] = [
  ['possible', few, believed],
  ['negative', { input: -5, output: -7 }, countedHere],
  ['without end', { input: 1e300, output: 1e300 }, countedHere],
  ['fractions', { input: 1.5, output: 2.5 }, countedHere],
  ['nothing', { input: 0, output: 0 }, countedHere],
  ['input beyond 2^53', { input: 2 ** 53, output: 1 }, countedHere],
  ['output of 2^31', { input: 10, output: 2_147_483_648 }, countedHere],
  ['negative tokens in the cache', { ...few, cacheWrite: -9 }, believed],
  // Messages reports cached tokens beside the others, so that these are possible there.
  ['more cached than there are', { ...few, cached: 500_000 }, [1, holdMax]],
  // The last, because its tokens exhaust the limit of tokens in a minute.
  ['15 million of output', { input: 10, output: 15_000_000 }, theHold],
]

const callers = [
  ['/v1/messages', 'claude-scripted', { max_tokens: outputMax }],
  ['/v1/chat/completions', 'chat-scripted', { max_tokens: outputMax }],
  ['/v1/responses', 'responses-scripted', { max_output_tokens: outputMax }],
] as const

async function prepare() {
  const upstream = await startScriptedUpstream()
  onTestFinished(upstream.stop)
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-usage-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const MODELS_FILE = join(folder, 'models.json')
  await writeFile(MODELS_FILE, JSON.stringify(stackModels({ scripted: upstream.url })))
  const environment = { MODELS_FILE, STATE_DIRECTORY: folder, UPSTREAM_KEY: 'key' }
  const api = await createTestApi({ environment })
  await waitUntil(api.house.policies.areKnown)
  const { organizationId } = api.organization
  const { value } = await createProjectKey(api.house, api.organization)
  await grantCredits(organizationId, { id: 'g', amount: granted }, { ...api.house, by: operator })
  const call = async ([path, model, max]: (typeof callers)[number], usage: ScriptUsage) => {
    const content = `#script ${JSON.stringify({ text: 'One two three.', usage })}`
    const response = await api.app.inject({
      method: 'POST',
      url: path,
      headers: { authorization: `Bearer ${value}` },
      payload: { model, ...max, ...promptOf(path, content) },
    })
    const { estimated_credits_used: used, remaining_credits: left } = response.json<{
      estimated_credits_used: number
      remaining_credits: number
    }>()
    return { status: response.statusCode, used, left, id: String(response.headers['x-request-id']) }
  }
  return { call, read: () => readCredits(api.db, organizationId) }
}

const promptOf = (path: string, content: string) =>
  path === '/v1/responses' ? { input: content } : { messages: [{ role: 'user', content }] }

test.for(callers)('%s: what the upstream reports', async (caller) => {
  const { call, read } = await prepare()
  let left = Number(granted)
  for (const [what, usage, [least, most]] of reported) {
    const answer = await call(caller, usage)
    expect([what, answer.status]).toEqual([what, 200])
    expect(answer.used, what).toBeGreaterThanOrEqual(least)
    expect(answer.used, what).toBeLessThanOrEqual(most)
    left -= answer.used
    const { entries, posted, held } = await read()
    expect([what, answer.left, posted, held]).toEqual([what, left, BigInt(left), 0n])
    expect([what, entries.get(answer.id)?.amount]).toEqual([what, BigInt(answer.used)])
  }
})
