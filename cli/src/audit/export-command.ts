import { open, rename, rm } from 'node:fs/promises'

import {
  listAuditCheckpoints,
  listAuditRecords,
  readAuditKeys,
} from '@gatehouse/contract/exports/audit-log'
import { z } from 'zod'

import { callService } from '../call.ts'
import type { Machine } from '../execute.ts'
import { naming } from '../input.ts'
import { baseUrlFrom, keyFrom } from '../settings.ts'
import { UsageError } from '../usage-error.ts'
import { fileText } from '../value.ts'
import { type Source, writeBundle } from './export-bundle.ts'

type Given = {
  out: string
  from: number | undefined
  to: number | undefined
  url: string | undefined
  keyFile: string | undefined
}

/** Writes a bundle beside its final name and moves it there when it is complete. */
export async function exportCommand(given: Given, machine: Machine): Promise<string> {
  const source = sourceFrom(given, machine)
  const partial = `${given.out}.partial`
  await using body = await opened(`${partial}.body`)
  await using file = await opened(partial)
  try {
    const { from, to } = await writeBundle(source, given, { body, file })
    await file.close()
    await rename(partial, given.out)
    return `Wrote records ${from + 1} to ${to} to ${given.out}. Verify it with: gatehouse audit verify ${given.out}\n`
  } finally {
    await Promise.all([partial, `${partial}.body`].map((path) => rm(path, { force: true })))
  }
}

async function opened(path: string) {
  try {
    return await open(path, 'w+', 0o600)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageError(`--out cannot be written: ${reason}`, { cause: error })
  }
}

const Page = z.object({ data: z.array(z.unknown()), has_more: z.boolean() })

const endpoints = {
  checkpoints: listAuditCheckpoints,
  records: listAuditRecords,
  keys: readAuditKeys,
}

function sourceFrom(
  { url, keyFile }: Given,
  { environment, readText, wait, say }: Machine,
): Source {
  const keyText =
    keyFile === undefined ? undefined : naming('key-file', () => fileText(keyFile, readText))
  const settings = {
    baseUrl: baseUrlFrom(environment, url),
    credential: keyFrom(environment, 'GATEHOUSE_ADMIN_KEY', keyText),
  }
  const read = (name: keyof typeof endpoints, query: Record<string, unknown>) =>
    callService(settings, { endpoint: endpoints[name], input: { query } }, wait)
  const page = async (name: keyof typeof endpoints, query: Record<string, unknown>) => {
    const parsed = Page.safeParse(await read(name, query))
    if (!parsed.success) throw new UsageError(`${settings.baseUrl} did not answer with a list.`)
    return parsed.data.data
  }
  return {
    checkpoints: (query) => page('checkpoints', query),
    records: (query) => page('records', query),
    keys: async () => JSON.stringify(await read('keys', {})),
    say,
  }
}
