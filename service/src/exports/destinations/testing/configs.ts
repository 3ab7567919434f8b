import type { SinkType } from '@gatehouse/contract/exports/sink-config'

/** A configuration of each type that leads to an address. */
export const configsAt = (endpoint: string): Record<SinkType, Record<string, unknown>> => ({
  splunk_hec: { endpoint, token: 'hec-token-1' },
  datadog_logs: { endpoint, api_key: 'datadog-key-1' },
  elastic: { endpoint, api_key: 'ZWxhc3RpYy1rZXktMQ==' },
  s3: {
    endpoint,
    bucket: 'audit',
    region: 'eu-central-1',
    access_key_id: 'AKIA1',
    secret_access_key: 's3-secret-1',
  },
  azure_monitor: {
    endpoint,
    dcr_immutable_id: 'dcr-1',
    stream_name: 'Custom-A',
    tenant_id: 'tenant-1',
    client_id: 'client-1',
    client_secret: 'azure-secret-1',
  },
  otlp_logs: { endpoint },
  webhook: { endpoint, secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}` },
})
