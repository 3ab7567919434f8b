import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import {
  type LedgerEntry,
  listLedgerEntries,
  readCredits,
  readUsage,
} from '@gatehouse/contract/credits'
import { readLimits } from '@gatehouse/contract/limits'
import { createOrganization, runOperator, type Stack } from '@gatehouse/tools/start-stack'
import { vi } from 'vitest'

import type { Target } from '#support/streams/call.ts'

/** Creates an organization for one test, with exactly as many credits as the test grants. */
export async function openAccount(stack: Stack, name: string, credits = 0) {
  const { base_url: baseUrl } = stack.description
  const made = await createOrganization(stack.service, name, usdOf(credits))
  const { organization_id, project_id, admin_key } = made
  const admin = createClient({ baseUrl, credential: admin_key })
  const key = await admin.call(createProjectApiKey, { params: { project_id }, body: { name } })
  const target: Target = { baseUrl, credential: key.value }
  let grants = 0
  return {
    target,
    organizationId: organization_id,
    keyId: key.id,
    projectId: project_id,
    async grant(more: number) {
      const named = ['--id', `grant-${++grants}`]
      await runOperator(stack.service, ['grant', organization_id, ...named, '--usd', usdOf(more)])
    },
    /** Records a payment, which also raises the tier, and waits until every process applies it. */
    async recordPayment(usd: number) {
      await runOperator(stack.service, [
        'payment',
        organization_id,
        '--id',
        'pay',
        '--usd',
        String(usd),
      ])
      const tierAt = async (url: string) =>
        (await createClient({ baseUrl: url, credential: admin_key }).call(readLimits, {})).tier
      const isEverywhere = async () => {
        const tiers = await Promise.all(stack.description.base_urls.map(tierAt))
        return tiers.every((tier) => tier !== 'free')
      }
      await vi.waitUntil(isEverywhere, { timeout: 60_000, interval: 100 })
    },
    /** The ledger entries of calls, the newest first. */
    async calls(): Promise<LedgerEntry[]> {
      const { data } = await admin.call(listLedgerEntries, {
        query: { order: 'desc', limit: '100' },
      })
      return data.filter(({ request_id }) => request_id !== null)
    },
    /** The usage report, over all days: a test that runs at midnight has two. */
    async usage() {
      const { data } = await admin.call(readUsage, { query: { group_by: 'project' } })
      const sum = (member: 'requests' | 'credits') =>
        data.reduce((total, item) => total + item[member], 0)
      return { requests: sum('requests'), credits: sum('credits') }
    },
    async balance(): Promise<number | null> {
      const caller = createClient({ baseUrl, credential: key.value })
      return (await caller.call(readCredits, {})).data.remaining_credits
    },
  }
}
export type Account = Awaited<ReturnType<typeof openAccount>>

const usdOf = (credits: number) => (credits / 1_000_000).toFixed(6)

/** Computes the amount of an entry from its own tokens and prices, in exact arithmetic. */
export function computeAmount(entry: LedgerEntry): bigint {
  const { prices } = entry
  if (!prices) throw new Error(`The entry ${entry.id} has no prices.`)
  const [input = 0, cached = 0, written = 0, output = 0] = [
    entry.input_tokens,
    entry.cached_input_tokens,
    entry.cache_write_tokens,
    entry.output_tokens,
  ].map((tokens) => tokens ?? 0)
  const picoUsd =
    BigInt(input - cached - written) * pico(prices.input) +
    BigInt(cached) * pico(prices.cached_input) +
    BigInt(written) * pico(prices.cache_write) +
    BigInt(output) * pico(prices.output)
  return (picoUsd + 999_999n) / 1_000_000n
}

/** Converts US dollars per million tokens to pico-dollars per token. */
function pico(usdPerMillion: string): bigint {
  const [whole = '0', decimals = ''] = usdPerMillion.split('.')
  return BigInt(`${whole}${decimals.padEnd(6, '0')}`)
}
