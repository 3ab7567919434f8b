import type { SinkConfig, SinkType } from '@gatehouse/contract/exports/sink-config'

import { createAzureMonitor } from './azure-monitor/azure-monitor.ts'
import { datadogLogs } from './datadog-logs/datadog-logs.ts'
import type { DestinationType } from './destination.ts'
import { elastic } from './elastic/elastic.ts'
import { otlpLogs } from './otlp-logs/otlp-logs.ts'
import { s3 } from './s3/s3.ts'
import { splunkHec } from './splunk-hec/splunk-hec.ts'
import { webhook } from './webhook/webhook.ts'

/** The kinds of destinations, by the names that configurations have. */
export type Destinations = { readonly [Type in SinkType]: DestinationType<SinkConfig<Type>> }

type Settings = {
  /** Where Azure gives out tokens; national clouds have their own. */
  azureLoginUrl?: string | undefined
  /** How long a batch for S3 waits until it is full. */
  s3PatienceMs?: number | undefined
}

export const createDestinations = ({
  azureLoginUrl,
  s3PatienceMs,
}: Settings = {}): Destinations => ({
  splunk_hec: splunkHec,
  datadog_logs: datadogLogs,
  elastic,
  s3: s3PatienceMs === undefined ? s3 : { ...s3, patienceMs: s3PatienceMs },
  azure_monitor: createAzureMonitor(azureLoginUrl === undefined ? {} : { loginUrl: azureLoginUrl }),
  otlp_logs: otlpLogs,
  webhook,
})
