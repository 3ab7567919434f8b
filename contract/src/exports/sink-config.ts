import { z } from 'zod'

import { storedText } from '../text.ts'

/** Text that is sent in a header or a path: visible ASCII, so that it cannot end one and begin another. */
const token = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e]*$/, { error: 'must have visible ASCII characters only' })

/** The shortest secret that can be saved. Sinks of earlier releases may have shorter ones, so the schema does not require it. */
export const secretLengthMin = 8

const aboutSecrets = `At least ${secretLengthMin} characters. Never shown: reads as \`********\`.`
const Secret = (max: number) => token(max).describe(aboutSecrets)

/** Where it may lead to is checked when it is saved, and again when it is called. */
const Endpoint = z
  .string()
  .max(2048)
  .regex(/^https?:\/\//i, { error: 'must be an address such as https://logs.example.com' })

const Label = storedText(1, 200)

const VerifyTls = z
  .boolean()
  .default(true)
  .describe('`false` is refused unless the operator allows it.')

export const SplunkHecConfig = z
  .strictObject({
    endpoint: Endpoint.describe('`/services/collector/event` is added where it has no path.'),
    token: Secret(512),
    index: Label.optional(),
    sourcetype: Label.default('policy_gateway_audit'),
    source: Label.default('policy-gateway'),
    host: Label.optional(),
    ack: z.boolean().default(false).describe('Waits until the indexer has acknowledged a batch.'),
    verify_tls: VerifyTls,
  })
  .meta({ id: 'SplunkHecConfig' })
export type SplunkHecConfig = z.infer<typeof SplunkHecConfig>

const DatadogSite = z
  .string()
  .max(253)
  .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, { error: 'must be a site such as datadoghq.eu' })

export const DatadogLogsConfig = z
  .strictObject({
    api_key: Secret(512),
    site: DatadogSite.default('datadoghq.com'),
    endpoint: Endpoint.optional().describe(
      'Replaces the address that follows from `site`; `/api/v2/logs` is added where it has no path.',
    ),
    service: Label.default('policy-gateway'),
    ddsource: Label.default('policy-gateway'),
    tags: z
      .array(storedText(1, 200).regex(/^[^,]*$/, { error: 'must not have a comma' }))
      .max(50)
      .default([]),
    hostname: Label.optional(),
  })
  .meta({ id: 'DatadogLogsConfig' })
export type DatadogLogsConfig = z.infer<typeof DatadogLogsConfig>

const elasticName = (what: string) =>
  z
    .string()
    .min(1)
    .max(100)
    .regex(/^[a-z0-9][a-z0-9._-]*$/, { error: `must be ${what} in lower case` })

export const ElasticConfig = z
  .strictObject({
    endpoint: Endpoint,
    api_key: Secret(4096)
      .optional()
      .describe(`${aboutSecrets} In base64, as Kibana shows it. Or \`username\` and \`password\`.`),
    username: storedText(1, 200).optional(),
    password: storedText(1, 512).optional().describe(aboutSecrets),
    index: elasticName('an index').optional(),
    dataset: elasticName('a dataset')
      .optional()
      .describe('Events go to the data stream `logs-<dataset>-<namespace>`. Or `index`.'),
    namespace: elasticName('a namespace').default('default'),
    ca_cert: z.string().min(1).max(20_000).optional().describe('Certificates to trust, in PEM.'),
    pipeline: elasticName('a pipeline').optional(),
  })
  .meta({ id: 'ElasticConfig' })
export type ElasticConfig = z.infer<typeof ElasticConfig>

export const S3Config = z
  .strictObject({
    bucket: z.string().regex(/^(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, {
      error: 'must be the name of a bucket',
    }),
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/, { error: 'must be a region such as eu-central-1' }),
    access_key_id: token(128),
    secret_access_key: Secret(512),
    prefix: z
      .string()
      .max(500)
      .regex(/^(?!\/)[\w!.*'()/=-]*$/, {
        error: "must not begin with / and have only letters, digits and !-_.*'()/=",
      })
      .refine((prefix) => !/(^|\/)\.{1,2}\//.test(prefix), {
        error: 'must not have . or .. as a folder',
      })
      .default('policy-gateway/'),
    endpoint: Endpoint.optional().describe('Of another store that speaks S3.'),
    sse: z.enum(['AES256', 'aws:kms']).optional(),
    kms_key_id: token(2048).optional(),
    format: z.literal('jsonl').default('jsonl'),
    compression: z.enum(['gzip', 'none']).default('gzip'),
  })
  .meta({ id: 'S3Config' })
export type S3Config = z.infer<typeof S3Config>

export const AzureMonitorConfig = z
  .strictObject({
    endpoint: Endpoint.describe('Of the data collection endpoint or rule.'),
    dcr_immutable_id: z
      .string()
      .regex(/^dcr-[\w-]{1,100}$/, { error: 'must be an id such as dcr-0123…' }),
    stream_name: z
      .string()
      .regex(/^Custom-[\w-]{1,100}$/, { error: 'must be a name such as Custom-Audit' }),
    tenant_id: z.string().regex(/^[\w.-]{1,200}$/, { error: 'must be the id of a tenant' }),
    client_id: token(200),
    client_secret: Secret(512),
    token_scope: token(500).default('https://monitor.azure.com/.default'),
  })
  .meta({ id: 'AzureMonitorConfig' })
export type AzureMonitorConfig = z.infer<typeof AzureMonitorConfig>

const HeaderName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, { error: 'must be the name of a header' })

export const OtlpLogsConfig = z
  .strictObject({
    endpoint: Endpoint.describe('`/v1/logs` is added where it has no path.'),
    header_name: HeaderName.default('Authorization'),
    header_value: storedText(1, 4096).optional().describe(aboutSecrets),
    service_name: Label.default('policy-gateway'),
    verify_tls: VerifyTls,
  })
  .meta({ id: 'OtlpLogsConfig' })
export type OtlpLogsConfig = z.infer<typeof OtlpLogsConfig>

export const WebhookSecret = z
  .string()
  .max(200)
  .regex(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/, {
    error: 'must be whsec_ and the base64 of at least 24 random bytes',
  })
  .describe('Signs what is sent, as Standard Webhooks says. Never shown: reads as `********`.')

export const WebhookConfig = z
  .strictObject({
    endpoint: Endpoint,
    secret: WebhookSecret,
    verify_tls: VerifyTls,
  })
  .meta({ id: 'WebhookConfig' })
export type WebhookConfig = z.infer<typeof WebhookConfig>

/** What each type of destination is configured with. */
export const sinkConfigs = {
  splunk_hec: SplunkHecConfig,
  datadog_logs: DatadogLogsConfig,
  elastic: ElasticConfig,
  s3: S3Config,
  azure_monitor: AzureMonitorConfig,
  otlp_logs: OtlpLogsConfig,
  webhook: WebhookConfig,
} as const

export type SinkType = keyof typeof sinkConfigs
export type SinkConfig<Type extends SinkType = SinkType> = z.infer<(typeof sinkConfigs)[Type]>

export const sinkTypes = Object.keys(sinkConfigs) as [SinkType, ...SinkType[]]

/** The members of a configuration that are sealed in the database and never shown. */
export const secretMembers: Readonly<Record<SinkType, readonly string[]>> = {
  splunk_hec: ['token'],
  datadog_logs: ['api_key'],
  elastic: ['api_key', 'password'],
  s3: ['secret_access_key'],
  azure_monitor: ['client_secret'],
  otlp_logs: ['header_value'],
  webhook: ['secret'],
}

/** What is read in place of a secret. Sent back, it keeps the secret that is stored. */
export const secretMask = '********'
