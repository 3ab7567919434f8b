import { setTimeout as sleep } from 'node:timers/promises'

import { createClient } from '@gatehouse/contract/client'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'

import { createCaller } from '../callers.ts'
import { memoryMegabytes } from '../process-usage.ts'
import { toTable } from '../table.ts'
import type { Gatehouse } from '../targets/gatehouse.ts'
import type { Target } from '../targets/target.ts'
import type { StreamSender } from './start-stream-sender.ts'

const streams = 2000
/** Held back of each stream. Its text is short, because a rule that reads all of it keeps it too. */
const frames = 100
const openingMs = 20_000
const settlingMs = 5000
const stallMs = 300_000
/** Only the whole answer decides it, so nothing of an answer leaves before its end. */
const rule = 'cel: !text.contains("never said")'

/** The memory of streams that have sent much of which nothing may leave. Prints only: it is to be bounded, not small. */
export async function measureHeld(
  { gatehouse, upstream }: { gatehouse: Gatehouse; upstream: Target },
  sender: StreamSender,
): Promise<void> {
  const keys = await Promise.all([1, 2].map((number) => createHolder(gatehouse, number)))
  const rest = await memoryMegabytes(gatehouse.pids)
  const script = { tokens: frames + 10, stallAfter: { pieces: frames, ms: stallMs } }
  const target = { ...gatehouse, keys: keys.flat() }
  sender.open(target, { streams, openingMs, script, tokensMax: 2 * frames })
  await untilOpen(upstream)
  await sleep(settlingMs)
  const { started } = await sender.report()
  if (started > 0) throw new Error(`${started} streams were not held back.`)
  const open = await memoryMegabytes(gatehouse.pids)
  sender.end()
  const perStream = ((open - rest) * 1024) / streams
  console.log(
    `\n${toTable([
      ['held streams', 'frames of each', 'at rest MB', 'open MB', 'KB per stream', 'per frame'],
      [
        String(streams),
        String(frames),
        rest.toFixed(0),
        open.toFixed(0),
        perStream.toFixed(1),
        (perStream / frames).toFixed(2),
      ],
    ])}`,
  )
}

/** The key of an organization whose answers are held back. */
async function createHolder(gatehouse: Gatehouse, number: number): Promise<readonly string[]> {
  const { organization, target } = await createCaller(gatehouse, `Holder ${number}`)
  const client = createClient({ baseUrl: gatehouse.url, credential: organization.admin_key })
  const policy = await client.call(createPolicy, {
    body: { name: 'Whole', rule, mode: 'enforcing', direction: 'response', scope: 'organization' },
  })
  await client.call(publishPolicy, {
    params: { policy_id: policy.id },
    query: { wait: 'applied' },
    body: { revision: policy.revision },
  })
  return target.keys
}

async function untilOpen(upstream: Target) {
  for (const deadline = Date.now() + openingMs + 60_000; Date.now() < deadline;) {
    const answer = await fetch(`${upstream.url}/control/state`)
    const { open } = (await answer.json()) as { open: number }
    if (open >= streams) return
    await sleep(200)
  }
  throw new Error('The upstream was not called for every stream.')
}
