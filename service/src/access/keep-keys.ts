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
const collectMs = 500
/** The most recently learned ones; writing more would stop everything else for too long. */
const keysMax = 10_000

const time = z.iso.datetime().transform((text) => new Date(text))
const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'))

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
  let keptText = ''

  async function recall() {
    const file = await files.read(fileName, outageMs)
    if (!file) return
    const kept = Kept.parse(JSON.parse(file.text))
    cache.recall(kept.map(({ name, ...entry }) => [name, entry] as const))
    // It is not taken once the database has been heard.
    if (cache.entries().length > 0) keptText = file.text
  }

  async function keep() {
    const known = cache.entries().slice(-keysMax)
    const text = JSON.stringify(
      known.map(([name, { loadedAtMs, value }]) => ({
        ...{ name, loadedAtMs, value: { ...value, key_hash: value.key_hash.toString('base64') } },
      })),
    )
    // While nothing is learned or forgotten the older file is as good, and its age stays true. Processes may
    // share the folder: who knows nothing and has kept nothing leaves the others' copy alone.
    if (text === keptText || (known.length === 0 && keptText === '')) return
    await files.keep(fileName, text)
    keptText = text
  }

  const orReport = (what: string) => (error: unknown) => log.problem(what, error)
  const keepOrReport = () => void keep().catch(orReport('keeping the known keys'))
  const recalled = recall().catch(orReport('reading the known keys'))
  const timer = setInterval(keepOrReport, keepEveryMs).unref()
  let soon: NodeJS.Timeout | undefined
  return {
    /** Something was forgotten, perhaps because it was revoked: the file must not bring it back. */
    onForgotten() {
      soon ??= setTimeout(() => {
        soon = undefined
        keepOrReport()
      }, collectMs).unref()
    },
    /** The database was heard: whatever was taken from the file is void, and the file may be another's. */
    onGap() {
      keptText = ''
    },
    async stop() {
      clearInterval(timer)
      clearTimeout(soon)
      await recalled
      await keep().catch(orReport('keeping the known keys'))
    },
  }
}
