import type { SinkType } from '@gatehouse/contract/exports/sink-config'

/**
 * The ports that each kind of destination may have: HTTPS, and the usual ones of the product. The operator can open others, one
 * host at a time (`EXPORT_PRIVATE_TARGETS`).
 */
export const portsOf: Readonly<Record<SinkType, readonly number[]>> = {
  splunk_hec: [443, 8088],
  datadog_logs: [443],
  elastic: [443, 9200, 9243],
  s3: [443, 9000],
  azure_monitor: [443],
  otlp_logs: [443, 4318],
  webhook: [443, 8443],
}
