import { listAdminApiKeys } from '@gatehouse/contract/api-key'
import { CallFailed } from '@gatehouse/contract/client'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { listAuditEvents } from '@gatehouse/contract/exports/audit-event'
import { z } from 'zod'

import { callService } from '../../call.ts'
import type { Machine } from '../../execute.ts'
import { naming } from '../../input.ts'
import { type Page, pageIn } from '../../page.ts'
import { baseUrlFrom, keyFrom, type Settings } from '../../settings.ts'
import { fileText } from '../../value.ts'
import type { Outcome } from '../verify-command.ts'
import { type Change, changeFrom } from './changes.ts'
import { describeHistory, type History, jsonOfHistory } from './describe-changes.ts'

export type Given = {
  policyId: string
  /** How many changes are shown at most. */
  limit: number
  after: string | undefined
  url: string | undefined
  keyFile: string | undefined
  json: boolean
}

/** Says who changed a policy, when and how, from the audit events; those of a deleted policy are there, too. */
export async function whoCommand(given: Given, machine: Machine): Promise<Outcome> {
  const settings = settingsFrom(given, machine)
  const read = (endpoint: Endpoint, query: Record<string, unknown>) =>
    readPage(settings, endpoint, { query, wait: machine.wait })
  const { changes, next } = await readChanges(read, given)
  if (changes.length === 0) {
    const stderr = `error: No change of ${given.policyId} is recorded, or its events were dropped after the time that they are kept.\n`
    return { exitCode: 1, stdout: '', stderr }
  }
  const keyNames = await readKeyNames(read, changes)
  const history: History = { policyId: given.policyId, changes, keyNames, next }
  const stdout = given.json
    ? `${JSON.stringify(jsonOfHistory(history))}\n`
    : describeHistory(history, machine.width)
  return { exitCode: 0, stdout, stderr: '' }
}

type Read = (endpoint: Endpoint, query: Record<string, unknown>) => Promise<Page>

function settingsFrom({ url, keyFile }: Given, { environment, readText }: Machine): Settings {
  const keyText =
    keyFile === undefined ? undefined : naming('key-file', () => fileText(keyFile, readText))
  return {
    baseUrl: baseUrlFrom(environment, url),
    credential: keyFrom(environment, 'GATEHOUSE_ADMIN_KEY', keyText),
  }
}

async function readPage(
  settings: Settings,
  endpoint: Endpoint,
  { query, wait }: { query: Record<string, unknown>; wait: Machine['wait'] },
): Promise<Page> {
  const page = pageIn(await callService(settings, { endpoint, input: { query } }, wait))
  if (!page) throw new Error(`${settings.baseUrl} did not answer with a list.`)
  return page
}

const pageMax = 100
/** A page can have a single event, if events are large. */
const pagesMax = 100

async function readChanges(read: Read, { policyId, limit, after }: Given) {
  const changes: Change[] = []
  let last = after
  for (let pages = 0; pages < pagesMax; pages++) {
    const size = Math.min(pageMax, limit - changes.length)
    const query = {
      policy_id: policyId,
      type: 'revision',
      limit: size,
      ...(last && { after: last }),
    }
    const page = await read(listAuditEvents, query)
    changes.push(...page.data.map(changeFrom).filter((change) => change !== undefined))
    last = page.last_id ?? last
    if (!page.has_more || page.data.length === 0) return { changes, next: undefined }
    if (changes.length >= limit) break
  }
  return { changes, next: last }
}

const NamedKey = z.object({ id: z.string(), name: z.string() })

/** The names of the keys that made the changes; ids alone if the caller's key may not list keys. */
async function readKeyNames(read: Read, changes: readonly Change[]): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  if (!changes.some(({ actor }) => actor.startsWith('key_'))) return names
  try {
    let after: string | undefined
    for (let pages = 0; pages < pagesMax; pages++) {
      const page = await read(listAdminApiKeys, { limit: pageMax, ...(after && { after }) })
      for (const item of page.data) {
        const key = NamedKey.safeParse(item)
        if (key.success) names.set(key.data.id, key.data.name)
      }
      if (!page.has_more || page.last_id === null) break
      after = page.last_id
    }
  } catch (error) {
    if (!(error instanceof CallFailed && error.status === 403)) throw error
  }
  return names
}
