import type { ExportItem, ExportRecord } from '#exports/destinations/destination.ts'
import { isWarning, summarise } from '#exports/destinations/summary.ts'

type AnyValue = Readonly<Record<string, unknown>>

/** An ExportLogsServiceRequest in JSON: 64-bit integers are texts, and enumerations are numbers. */
export function writeExportRequest(
  serviceName: string,
  batch: readonly ExportItem[],
  now: Date,
): string {
  const logRecords = batch.map(({ record }) => toLogRecord(record, now))
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: serviceName } }] }
  const scopeLogs = [{ scope: { name: 'gatehouse.audit' }, logRecords }]
  return JSON.stringify({ resourceLogs: [{ resource, scopeLogs }] })
}

function toLogRecord(record: ExportRecord, now: Date) {
  const severity = isWarning(record)
    ? { severityNumber: 13, severityText: 'WARN' }
    : { severityNumber: 9, severityText: 'INFO' }
  return {
    timeUnixNano: toNanoseconds(Date.parse(record.created_at)),
    observedTimeUnixNano: toNanoseconds(now.getTime()),
    ...severity,
    eventName: `gatehouse.audit.${record.event_type}`,
    body: { stringValue: summarise(record) },
    attributes: Object.entries(record).map(([key, value]) => ({ key, value: toAnyValue(value) })),
  }
}

const toNanoseconds = (ms: number) => `${ms}000000`

/**
 * Objects are JSON texts: products flatten or drop lists of keys and values, each in its own way. The text of the payload is
 * the one that its hash was made of. Null is a value without a kind.
 */
function toAnyValue(value: unknown): AnyValue {
  if (value === null || value === undefined) return {}
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  if (Array.isArray(value) && !value.some((item) => typeof item === 'object')) {
    return { arrayValue: { values: value.map(toAnyValue) } }
  }
  return { stringValue: JSON.stringify(value) }
}
