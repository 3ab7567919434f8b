import { setTimeout } from 'node:timers/promises'

import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { type LedgerEntry, listLedgerEntries, readCredits } from '@gatehouse/contract/credits'
import { createOrganization, runOperator, type Stack } from '@gatehouse/tools/start-stack'

import type { Target } from './stream-call.ts'

/** An organization of a test's own, with exactly as many credits as the test gives it. */
export async function openAccount(stack: Stack, name: string, credits = 0) {
  const { base_url: baseUrl } = stack.description
  const made = await createOrganization(stack.service, name, usdOf(credits))
  const { organization_id, project_id, admin_key } = made
  const admin = createClient({ baseUrl, credential: admin_key })
  const key = await admin.call(createProjectApiKey, { params: { project_id }, body: { name } })
  const target: Target = { baseUrl, credential: key.value }
  let grants = 0
  return {
    ...{ target, organizationId: organization_id, keyId: key.id, projectId: project_id },
    async give(more: number) {
      const named = ['--id', `grant-${++grants}`]
      await runOperator(stack.service, ['grant', organization_id, ...named, '--usd', usdOf(more)])
    },
    /** Paying also decides the tier; it is known everywhere when this is over. */
    async pay(usd: number) {
      await runOperator(stack.service, [
        'payment',
        organization_id,
        '--id',
        'pay',
        '--usd',
        String(usd),
      ])
      await setTimeout(1500)
    },
    /** What calls have left behind, the newest first. */
    async calls(): Promise<LedgerEntry[]> {
      const { data } = await admin.call(listLedgerEntries, {
        query: { order: 'desc', limit: '100' },
      })
      return data.filter(({ request_id }) => request_id !== null)
    },
    async balance(): Promise<number> {
      const caller = createClient({ baseUrl, credential: key.value })
      return (await caller.call(readCredits, {})).data.remaining_credits
    },
  }
}
export type Account = Awaited<ReturnType<typeof openAccount>>

const usdOf = (credits: number) => (credits / 1_000_000).toFixed(6)

/** What an entry costs by what it says itself, in exact arithmetic. */
export function recomputed(entry: LedgerEntry): bigint {
  const { prices } = entry
  if (!prices) throw new Error(`The entry ${entry.id} names no prices.`)
  const [input = 0, cached = 0, written = 0, output = 0] = [
    ...[entry.input_tokens, entry.cached_input_tokens, entry.cache_write_tokens],
    entry.output_tokens,
  ].map((tokens) => tokens ?? 0)
  const picoUsd =
    BigInt(input - cached - written) * pico(prices.input) +
    BigInt(cached) * pico(prices.cached_input) +
    BigInt(written) * pico(prices.cache_write) +
    BigInt(output) * pico(prices.output)
  return (picoUsd + 999_999n) / 1_000_000n
}

/** US dollars per million tokens, in millionths of a millionth of a dollar per token. */
function pico(usdPerMillion: string): bigint {
  const [whole = '0', decimals = ''] = usdPerMillion.split('.')
  return BigInt(`${whole}${decimals.padEnd(6, '0')}`)
}
