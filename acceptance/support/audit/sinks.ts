import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { createClient } from '@gatehouse/contract/client'
import { listAuditRecords } from '@gatehouse/contract/exports/audit-log'
import { createExport, type ExportSink, listExports } from '@gatehouse/contract/exports/export-sink'
import type { AllDoubles } from '@gatehouse/tools/destinations/all-doubles'

import type { Arrivals } from './arrivals.ts'

/** The kinds of sink that the tests of delivery look at. */
export const sinkTypes = ['splunk_hec', 'datadog_logs', 'elastic', 's3', 'azure_monitor'] as const
export type SinkType = (typeof sinkTypes)[number]

/** What processes of the service need so that their sinks may lead to the doubles. */
export async function exportSettings(doubles: AllDoubles, folder: string) {
  const certificate = join(folder, 'doubles.pem')
  await writeFile(certificate, doubles.ca)
  return {
    NODE_EXTRA_CA_CERTS: certificate,
    EXPORT_PRIVATE_TARGETS: doubles.targets.join(','),
    EXPORT_AZURE_LOGIN_URL: doubles.azureLoginUrl,
    EXPORT_S3_FLUSH_SECONDS: '1',
    AUDIT_SIGNING_KEYS: `1:${randomBytes(32).toString('base64')}`,
  }
}

type Caller = { baseUrl: string; credential: string }

/** Creates a sink of each kind. */
export async function createSinks(caller: Caller, doubles: AllDoubles) {
  const client = createClient(caller)
  for (const type of sinkTypes) {
    const { config } = doubles[type]
    // The doubles are shared by the organizations, as an index or a bucket of theirs would not be.
    const own = type === 's3' ? { prefix: `${crypto.randomUUID()}/` } : {}
    await client.call(createExport, { body: { type, config: { ...config, ...own } } })
  }
}

export async function readSinks(caller: Caller): Promise<ExportSink[]> {
  return (await createClient(caller).call(listExports, { query: {} })).data
}

/** Takes the records of an organization that are older than its sinks. */
export async function takeEarlierRecords(caller: Caller, arrivals: Arrivals) {
  const page = await createClient(caller).call(listAuditRecords, { query: { limit: '1000' } })
  for (const { record } of page.data) arrivals.takeEarlier(record)
}

/** Hands over to `arrivals` what the doubles have received, and forgets it. */
export function drainDoubles(doubles: AllDoubles, arrivals: Arrivals) {
  for (const type of sinkTypes) {
    for (const record of doubles[type].double.received.splice(0)) {
      arrivals.take(type, record)
      if (type !== 'elastic') continue
      // Elasticsearch recognises a document by its id: the rest of it is no longer needed.
      for (const documents of doubles.elastic.double.indices.values()) {
        if (documents.has(String(record['event_id']))) {
          documents.set(String(record['event_id']), {})
        }
      }
    }
  }
  doubles.splunk_hec.double.envelopes.length = 0
  doubles.datadog_logs.double.logs.length = 0
}

export const findDoubleProblems = (doubles: AllDoubles) =>
  sinkTypes.flatMap((type) =>
    doubles[type].double.problems.slice(0, 5).map((problem) => `${type}: ${problem}`),
  )
