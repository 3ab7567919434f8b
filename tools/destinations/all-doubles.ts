import { startAzureDouble } from './azure-monitor.ts'
import { startDatadogDouble } from './datadog-logs.ts'
import type { DestinationDouble } from './double.ts'
import { startElasticDouble } from './elastic.ts'
import { startOtlpDouble } from './otlp-logs.ts'
import { startS3Double } from './s3.ts'
import { startSplunkDouble } from './splunk-hec.ts'
import { startWebhookDouble } from './webhook.ts'

/** A double with the configuration of a sink that leads to it. */
type ConfiguredDouble = { double: DestinationDouble; config: Record<string, unknown> }

const webhookSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

/** Starts a double of every type of destination, each with its own secrets. */
export async function startAllDoubles() {
  const s3 = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'example-secret-access-key' }
  const [splunk, datadog, elastic, bucket, azure, otlp, webhook] = await Promise.all([
    startSplunkDouble({ token: 'example-splunk-token' }),
    startDatadogDouble({ apiKey: 'example-datadog-key' }),
    startElasticDouble({ authorization: 'ApiKey ZXhhbXBsZQ==' }),
    startS3Double({ ...s3, bucket: 'audit', region: 'eu-central-1' }),
    startAzureDouble({
      tenantId: 'example-tenant',
      clientId: 'example-client',
      clientSecret: 'example-client-secret',
      dcrImmutableId: 'dcr-0123456789abcdef',
      streamName: 'Custom-Audit',
    }),
    startOtlpDouble({ header: { name: 'Authorization', value: 'Bearer example-otlp-token' } }),
    startWebhookDouble({ secret: webhookSecret }),
  ])
  const all = {
    splunk_hec: configured(splunk, { token: 'example-splunk-token' }),
    datadog_logs: configured(datadog, { api_key: 'example-datadog-key' }),
    elastic: configured(elastic, { api_key: 'ZXhhbXBsZQ==', ca_cert: elastic.ca }),
    s3: configured(bucket, {
      bucket: 'audit',
      region: 'eu-central-1',
      access_key_id: s3.accessKeyId,
      secret_access_key: s3.secretAccessKey,
    }),
    azure_monitor: configured(azure, {
      dcr_immutable_id: 'dcr-0123456789abcdef',
      stream_name: 'Custom-Audit',
      tenant_id: 'example-tenant',
      client_id: 'example-client',
      client_secret: 'example-client-secret',
    }),
    otlp_logs: configured(otlp, { header_value: 'Bearer example-otlp-token' }),
    webhook: configured(webhook, { secret: webhookSecret }),
  } satisfies Record<string, ConfiguredDouble>
  const doubles = Object.values(all).map(({ double }) => double)
  return {
    ...all,
    /** `host:port` of each, for the operator's list of private targets. */
    targets: doubles.map(({ endpoint }) => new URL(endpoint).host),
    ca: splunk.ca,
    azureLoginUrl: azure.endpoint,
    async [Symbol.asyncDispose]() {
      await Promise.all(doubles.map((double) => double[Symbol.asyncDispose]()))
    },
  }
}
export type AllDoubles = Awaited<ReturnType<typeof startAllDoubles>>

const configured = <Double extends DestinationDouble>(
  double: Double,
  config: Record<string, unknown>,
) => ({
  double,
  config: { endpoint: double.endpoint, ...config },
})
