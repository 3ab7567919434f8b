import { Plan } from '@gatehouse/contract/limits'
import { z } from 'zod'

import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { FoundKey } from './credential-store.ts'
import type { LookupCache } from './lookup-cache.ts'

type Options = {
  cache: Pick<LookupCache<FoundKey>, 'entries' | 'recall'>
  files: TrustedFiles
  /** How long a known key may be believed without asking the store. */
  outageMs: number
  log: Log
}

const fileName = 'keys'
const keepEveryMs = 30_000

const time = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})
const bytes = z.codec(z.base64(), z.instanceof(Buffer), {
  decode: (text) => Buffer.from(text, 'base64'),
  encode: (buffer) => buffer.toString('base64'),
})

const Kept = z.array(
  z.object({
    name: z.string(),
    loadedAtMs: z.int(),
    value: z.object({
      id: z.string(),
      organization_id: z.string(),
      project_id: z.string().nullable(),
      kind: z.enum(['admin', 'project']),
      key_hash: bytes,
      hash_version: z.int(),
      permissions: z.array(z.string()),
      expires_at: time.nullable(),
      revoked_at: time.nullable(),
      organization_status: z.enum(['active', 'suspended']),
      plan: Plan,
      paid_micro_usd: z.string(),
      project_status: z.enum(['active', 'archived']).nullable(),
    }),
  }),
)

/**
 * Keeps the known keys on disk (only hashes of them, as in the database), so that a process that starts
 * while the database is away recognises its callers for as long as one that went on running.
 */
export function keepKeys({ cache, files, outageMs, log }: Options) {
  async function recall() {
    const file = await files.read(fileName, outageMs)
    if (!file) return
    const kept = Kept.parse(JSON.parse(file.text))
    cache.recall(kept.map(({ name, ...entry }) => [name, entry] as const))
  }

  let keptText = ''
  async function keep() {
    const known = cache.entries().map(([name, entry]) => ({ name, ...entry }))
    const text = JSON.stringify(Kept.encode(known))
    // While nothing is learned the older file is as good, and its age stays true.
    if (known.length === 0 || text === keptText) return
    keptText = text
    await files.keep(fileName, text)
  }

  const orReport = (what: string) => (error: unknown) => log.problem(what, error)
  const recalled = recall().catch(orReport('reading the known keys'))
  const timer = setInterval(
    () => void keep().catch(orReport('keeping the known keys')),
    keepEveryMs,
  )
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      await recalled
      await keep().catch(orReport('keeping the known keys'))
    },
  }
}
