import { type LimitOverrides, Plan } from '@gatehouse/contract/limits'
import { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { z } from 'zod'

import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { Entries } from './credential-memory.ts'
import type { FoundKey } from './credential-store.ts'
import type { LookupCache } from './lookup-cache.ts'

type Options = {
  cache: Pick<LookupCache<FoundKey>, 'entries' | 'restore'>
  files: TrustedFiles
  /** How long a cached key stays valid while the database is unreachable. */
  outageMs: number
  log: Log
}

const fileName = 'keys'
const writeEveryMs = 30_000
const collectMs = 500
/** The most recently cached ones; serializing more would block the event loop for too long. */
const keysMax = 10_000
/** Of all lists of models in the file together. */
const modelIdsMax = 200_000

const time = z.iso.datetime().transform((text) => new Date(text))
const bytes = z.base64().transform((text) => Buffer.from(text, 'base64'))

const overrides: z.ZodType<LimitOverrides> = z.partialRecord(
  z.enum(['organization', 'project', 'key']),
  z.record(z.string(), z.number()),
)

const KeyFile = z.array(
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
      // Files of earlier releases have none of these.
      project_name: z.string().nullable().default(null),
      member_id: z.string().nullable().default(null),
      member_status: z.string().nullable().default(null),
      member_project_role: z.string().nullable().default(null),
      limit_overrides: overrides.nullable().default(null),
      monthly_budget: MonthlyBudget.nullable().default(null),
      project_budget: MonthlyBudget.nullable().default(null),
      allowed_models: z.array(z.string()).nullable().optional(),
      project_labels: z.record(z.string(), z.string()).nullable().default(null),
    }),
  }),
)

/** A file of an earlier release does not say which models a key may use. Such a key has to be looked up again. */
function toEntry({ name, loadedAtMs, value }: z.infer<typeof KeyFile>[number]) {
  const { allowed_models, ...rest } = value
  if (allowed_models === undefined) return []
  return [[name, { loadedAtMs, value: { ...rest, allowed_models } }] as const]
}

/** The newest come last. */
function newestOf(entries: Entries<FoundKey>): Entries<FoundKey> {
  const newest = entries.slice(-keysMax)
  let modelIds = 0
  const last = newest.findLastIndex(([, { value }]) => {
    modelIds += value.allowed_models?.length ?? 0
    return modelIds > modelIdsMax
  })
  return newest.slice(last + 1)
}

/**
 * Writes the cached keys to disk (only their hashes, as in the database), so that a process that starts
 * while the database is unreachable accepts the same keys as a process that was already running.
 *
 * `ownText` is what this process believes to be in the file: '' when it has neither read nor written the
 * file, or when the file may have been written by another process that shares the folder.
 */
export function keepKeysOnDisk({ cache, files, outageMs, log }: Options) {
  let ownText = ''

  async function restore() {
    const file = await files.read(fileName, outageMs)
    if (!file) return
    const keys = KeyFile.parse(JSON.parse(file.text))
    cache.restore(keys.flatMap(toEntry))
    // The cache refuses the entries once it has heard of a change from the database.
    if (cache.entries().length > 0) ownText = file.text
  }

  async function write() {
    const entries = newestOf(cache.entries())
    const text = JSON.stringify(
      entries.map(([name, { loadedAtMs, value }]) => ({
        name,
        loadedAtMs,
        value: { ...value, key_hash: value.key_hash.toString('base64') },
      })),
    )
    // An unchanged file is not rewritten, so that its age stays true. An empty cache does not replace a
    // file that another process may have written.
    if (text === ownText || (entries.length === 0 && ownText === '')) return
    await files.keep(fileName, text)
    ownText = text
  }

  const writeOrLog = () =>
    write().catch((error: unknown) => log.problem('known_keys_not_written', error))
  const restored = restore().catch((error: unknown) => log.problem('known_keys_unreadable', error))
  const timer = setInterval(() => void writeOrLog(), writeEveryMs).unref()
  let scheduled: NodeJS.Timeout | undefined
  return {
    /** The cache has dropped a key, perhaps because it was revoked: the file must not bring it back. */
    onForgotten() {
      scheduled ??= setTimeout(() => {
        scheduled = undefined
        void writeOrLog()
      }, collectMs).unref()
    },
    /** Changes may have been missed: the cache is empty now, and the file may be another process's. */
    onGap() {
      ownText = ''
    },
    async stop() {
      clearInterval(timer)
      clearTimeout(scheduled)
      await restored
      await writeOrLog()
    },
  }
}
