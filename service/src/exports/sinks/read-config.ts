import { X509Certificate } from 'node:crypto'

import {
  secretLengthMin,
  secretMask,
  secretMembers,
  sinkConfigs,
  type SinkType,
} from '@gatehouse/contract/exports/sink-config'
import type { z } from 'zod'

import { explainIssue, toParam } from '#http/validate.ts'
import { ApiError } from '#platform/api-error.ts'
import { checkHeaders, EgressBlocked } from '#platform/egress-target.ts'

import type { Members } from './sink.ts'

/**
 * The stored configuration with the given changes. In a change, null removes a member and the mask keeps a secret. Throws a 422 for a
 * member that the type does not have, and for a new secret that is too short.
 */
export function mergeConfig(type: SinkType, stored: Members, given: Members): Members {
  refuseEndedApi(type, given)
  const unknown = Object.keys(given).find((name) => !(name in sinkConfigs[type].shape))
  if (unknown !== undefined) throw unknownMember(type, unknown)
  const keepsSecret = (name: string, value: unknown) =>
    value === secretMask && secretMembers[type].includes(name)
  const changes = Object.entries(given).filter(([name, value]) => !keepsSecret(name, value))
  for (const [name, value] of changes) {
    if (secretMembers[type].includes(name) && value !== stored[name]) requireLong(name, value)
  }
  return Object.fromEntries(
    Object.entries({ ...stored, ...Object.fromEntries(changes) }).filter(
      ([, value]) => value !== null,
    ),
  )
}

/**
 * A destination may repeat a secret in an error, which is shown without it. A short one could be guessed from where it was taken out,
 * or would take ordinary words out.
 */
function requireLong(name: string, secret: unknown) {
  if (typeof secret !== 'string' || secret.trim().length >= secretLengthMin) return
  throw invalidConfig(name, `must have at least ${secretLengthMin} characters, as every secret`)
}

/** Validates a complete configuration and adds the defaults; throws a 422 that names the first wrong member. */
export function readConfig(type: SinkType, members: Members, rules: ConfigRules): Members {
  const result = sinkConfigs[type].safeParse(members)
  if (!result.success) throw toError(result.error.issues[0], members)
  const config: Members = result.data
  if (config['verify_tls'] === false && !rules.allowsInsecureTls) {
    throw invalidConfig('verify_tls', 'must be true: the operator does not allow anything else')
  }
  for (const [name, rule] of contradictionsIn(type, config)) throw invalidConfig(name, rule)
  return config
}

export type ConfigRules = { allowsInsecureTls: boolean }

/** `member` is '' for the whole configuration; `rule` is the end of a sentence that starts with its name. */
export function invalidConfig(member: string, rule: string): ApiError {
  const param = toParam('body', member === '' ? ['config'] : ['config', member])
  return new ApiError('invalid_export_config', `'${param}' ${rule}.`, { param })
}

function unknownMember(type: SinkType, name: string): ApiError {
  const param = toParam('body', ['config', name])
  return new ApiError('unknown_field', `'${param}' is not a member for ${type}.`, { param })
}

function toError(issue: z.core.$ZodIssue | undefined, members: Members): ApiError {
  if (!issue) return invalidConfig('', 'is not valid')
  const { path, rule } = explainIssue(issue, members)
  const param = toParam('body', ['config', ...path])
  const code = rule === 'is required' ? 'missing_field' : 'invalid_export_config'
  return new ApiError(code, `'${param}' ${rule}.`, { param })
}

/** Configurations of the older interface are common, so they get a reason instead of an unknown member. */
function refuseEndedApi(type: SinkType, members: Members) {
  if (type !== 'azure_monitor') return
  const member = ['workspace_id', 'shared_key'].find((name) => name in members)
  if (member === undefined) return
  throw invalidConfig(
    member,
    'belongs to the Data Collector API, which ended on 14 September 2026; send events through a data collection rule with endpoint, dcr_immutable_id and stream_name',
  )
}

type Contradiction = readonly [member: string, rule: string]

function contradictionsIn(type: SinkType, config: Members): Contradiction[] {
  switch (type) {
    case 'elastic':
      return contradictionsInElastic(config)
    case 's3':
      return config['sse'] === 'aws:kms' && config['kms_key_id'] === undefined
        ? [['kms_key_id', 'is needed with aws:kms']]
        : []
    case 'otlp_logs':
      return contradictionsInHeader(config)
    default:
      return []
  }
}

function contradictionsInElastic(config: Members): Contradiction[] {
  const has = (name: string) => config[name] !== undefined
  const found: Contradiction[] = []
  if (has('api_key') && (has('username') || has('password'))) {
    found.push(['api_key', 'cannot be combined with username and password'])
  }
  if (!has('api_key') && !has('username') && !has('password')) {
    found.push(['api_key', 'is needed, or username and password'])
  }
  if (!has('api_key') && !has('password')) found.push(['password', 'is needed with username'])
  if (!has('api_key') && !has('username')) found.push(['username', 'is needed with password'])
  if (has('index') && has('dataset')) found.push(['index', 'cannot be combined with dataset'])
  const certificates = config['ca_cert']
  if (typeof certificates === 'string' && !areCertificates(certificates)) {
    found.push(['ca_cert', 'must be certificates in PEM, and nothing else'])
  }
  return found
}

/** A private key beside the certificates would be shown to everybody who may read the sink. */
function areCertificates(pem: string): boolean {
  if (pem.includes('PRIVATE KEY')) return false
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) void new X509Certificate(block)
  } catch {
    return false
  }
  return blocks.length > 0
}

function contradictionsInHeader(config: Members): Contradiction[] {
  const name = String(config['header_name'])
  if (!isHeaderAllowed(name, '')) return [['header_name', 'is set by the gateway itself']]
  const value = config['header_value']
  return typeof value !== 'string' || isHeaderAllowed(name, value)
    ? []
    : [['header_value', 'must have no characters that a header cannot have']]
}

function isHeaderAllowed(name: string, value: string): boolean {
  try {
    checkHeaders({ [name]: value })
    return true
  } catch (error) {
    if (error instanceof EgressBlocked) return false
    throw error
  }
}
