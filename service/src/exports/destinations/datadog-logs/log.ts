import type { DatadogLogsConfig } from '@gatehouse/contract/exports/sink-config'

import type { ExportRecord } from '#exports/destinations/destination.ts'
import { isWarning, summarise } from '#exports/destinations/summary.ts'

/** What Datadog reads as something about the log itself. */
const reserved = new Set(
  (
    'ddsource service ddtags hostname host message status severity level trace_id span_id gatehouse_record ' +
    // Its time: the first of these that it has. A log of more than 18 hours ago is silently dropped.
    'timestamp date _timestamp Timestamp eventTime published_date'
  ).split(' '),
)
const oldestMs = 17 * 60 * 60 * 1000

/**
 * An event as a log. The members of the record are the attributes of the log. Those that Datadog would take for something else
 * or that the configuration sets are, unchanged, in `gatehouse_record`.
 *
 * An event that is sent late, after an outage or in a replay, has no `timestamp`, so that Datadog keeps it, under the time of
 * its arrival. When it happened is in `created_at`, as in all others.
 */
export function writeLog(config: DatadogLogsConfig, record: ExportRecord, now: Date): string {
  const { ddsource, service, tags, hostname } = config
  const members = Object.entries(record)
  const moved = members.filter(([name]) => reserved.has(name))
  const isFresh = now.getTime() - Date.parse(record.created_at) < oldestMs
  return JSON.stringify({
    ddsource,
    service,
    ddtags: tags.join(','),
    hostname,
    message: summarise(record),
    status: isWarning(record) ? 'warn' : 'info',
    ...(isFresh && { timestamp: record.created_at }),
    ...Object.fromEntries(members.filter(([name]) => !reserved.has(name))),
    ...(moved.length > 0 && { gatehouse_record: Object.fromEntries(moved) }),
  })
}
