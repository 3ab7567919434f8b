import { gunzipSync } from 'node:zlib'

import {
  type DestinationDouble,
  type DoubleAnswer,
  type DoubleRequest,
  startDouble,
} from './double.ts'

type Row = Record<string, unknown>
type Settings = {
  dcrImmutableId: string
  streamName: string
  tenantId: string
  clientId: string
  clientSecret: string
  scope: string
  /** How long a token is valid. */
  tokenSeconds: number
  now: () => Date
}
type AzureOptions = Partial<Settings> & { port?: number }

export type AzureDouble = DestinationDouble & {
  /** How many tokens were given away. */
  tokensGiven(): number
  /** No token that was given until now is valid any more. */
  revokeTokens(): void
}

const defaults = {
  dcrImmutableId: 'dcr-0123456789abcdef0123456789abcdef',
  streamName: 'Custom-PolicyGatewayAudit',
  tenantId: '11111111-2222-3333-4444-555555555555',
  clientId: '66666666-7777-8888-9999-000000000000',
  clientSecret: 'client~secret+/=',
  scope: 'https://monitor.azure.com/.default',
  tokenSeconds: 3599,
  now: () => new Date(),
}
const callBytesMax = 1024 * 1024
const fieldBytesMax = 64 * 1024
const columnName = /^[A-Za-z][A-Za-z0-9_]{0,44}$/
const reservedColumns = new Set(['id', 'tenantid', 'type', 'uniqueid', 'title', '_resourceid'])

/** The login of Microsoft Entra ID and the Logs Ingestion API on one address. */
export async function startAzureDouble({
  port,
  ...options
}: AzureOptions = {}): Promise<AzureDouble> {
  const settings: Settings = { ...defaults, ...options }
  const received: Row[] = []
  const problems: string[] = []
  const tokens = createTokenBook(settings)

  function refuse(status: number, code: string, message: string): DoubleAnswer {
    problems.push(`${code}: ${message}`)
    return writeJson(status, { error: { code, message } })
  }

  function ingest(request: DoubleRequest): DoubleAnswer {
    const { url, headers } = request
    if (!tokens.isValid(headers.authorization)) {
      return refuse(401, 'AuthenticationFailed', 'The authentication token is invalid or expired.')
    }
    if (url.searchParams.get('api-version') !== '2023-01-01' || url.searchParams.size !== 1) {
      return refuse(400, 'UnsupportedApiVersion', 'The api-version is not supported.')
    }
    const [, dcr, stream] = ingestionPath.exec(url.pathname) ?? []
    if (dcr !== settings.dcrImmutableId) {
      return refuse(404, 'NotFound', `Data collection rule with immutable Id '${dcr}' not found.`)
    }
    if (stream !== settings.streamName) {
      return refuse(400, 'InvalidStream', `The stream ${stream} was not configured in the rule.`)
    }
    const rows = readRows(request)
    if (typeof rows === 'string') return refuse(400, 'InvalidPayload', rows)
    if (rows === undefined) return refuse(413, 'ContentLengthLimitExceeded', 'Maximum is 1 MB.')
    problems.push(...rows.flatMap(checkRow))
    received.push(...rows)
    return { status: 204 }
  }

  const started = await startDouble((request) => {
    if (request.method !== 'POST') return refuse(405, 'MethodNotAllowed', request.method)
    if (!request.url.pathname.endsWith('/oauth2/v2.0/token')) return ingest(request)
    const answer = answerLogin(request, settings, tokens)
    if (answer.problem !== undefined) problems.push(answer.problem)
    return writeJson(answer.status, answer.body)
  }, port)
  const { tokensGiven, revokeTokens } = tokens
  return Object.assign(started, { received, problems, tokensGiven, revokeTokens })
}

const ingestionPath = /^\/dataCollectionRules\/([^/]+)\/streams\/([^/]+)$/
const writeJson = (status: number, body: unknown): DoubleAnswer => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(body),
})

function createTokenBook({ tokenSeconds, now }: Settings) {
  const endings = new Map<string, number>()
  let given = 0
  return {
    give() {
      given += 1
      const token = `eyJ0eXAi.${given}.${'x'.repeat(1000)}`
      endings.set(`Bearer ${token}`, now().getTime() + tokenSeconds * 1000)
      return token
    },
    isValid: (authorization = '') => now().getTime() < (endings.get(authorization) ?? 0),
    tokensGiven: () => given,
    revokeTokens: () => endings.clear(),
  }
}

type LoginAnswer = { status: number; body: unknown; problem?: string }

function answerLogin(
  { url, headers, body }: DoubleRequest,
  settings: Settings,
  tokens: ReturnType<typeof createTokenBook>,
): LoginAnswer {
  const refuse = (status: number, error: string, description: string): LoginAnswer => ({
    status,
    problem: `${error}: ${description}`,
    body: {
      error,
      error_description: `${description}\r\nTrace ID: 1\r\nCorrelation ID: 2\r\nTimestamp: 3`,
      error_codes: [1],
    },
  })
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') {
    return refuse(400, 'invalid_request', 'AADSTS900144: The request body must be a form.')
  }
  if (url.pathname !== `/${settings.tenantId}/oauth2/v2.0/token`) {
    return refuse(400, 'invalid_request', 'AADSTS90002: Tenant not found.')
  }
  const form = new URLSearchParams(body.toString())
  if (form.get('grant_type') !== 'client_credentials' || form.size !== 4) {
    return refuse(400, 'unsupported_grant_type', 'AADSTS70003: The grant type is not supported.')
  }
  if (form.get('client_id') !== settings.clientId) {
    return refuse(400, 'unauthorized_client', 'AADSTS700016: Application was not found.')
  }
  if (form.get('client_secret') !== settings.clientSecret) {
    return refuse(401, 'invalid_client', 'AADSTS7000215: Invalid client secret provided.')
  }
  if (form.get('scope') !== settings.scope) {
    return refuse(400, 'invalid_scope', 'AADSTS70011: The provided value for scope is not valid.')
  }
  const { tokenSeconds: expires_in } = settings
  const access_token = tokens.give()
  const answer = { token_type: 'Bearer', expires_in, ext_expires_in: expires_in, access_token }
  return { status: 200, body: answer }
}

/** The rows, what is wrong with the body, or nothing where it is too large. */
function readRows({ headers, body }: DoubleRequest): Row[] | string | undefined {
  if (!/^application\/json(;|$)/.test(headers['content-type'] ?? '')) return 'Not application/json.'
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'gzip') return 'Unknown encoding.'
  const plain = encoding === 'gzip' ? gunzipSync(body) : body
  if (plain.length > callBytesMax) return undefined
  const rows: unknown = JSON.parse(plain.toString())
  // Azure takes an object for an answer of 204, and drops it.
  if (!Array.isArray(rows) || rows.length === 0) return 'The body is not a list of rows.'
  return rows as Row[]
}

/** What Azure would take, and store in another form or not at all. */
function checkRow(row: Row): string[] {
  const problems = Object.entries(row).flatMap(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const isLong = Buffer.byteLength(text) > fieldBytesMax
    const isColumn = columnName.test(name) && !reservedColumns.has(name.toLowerCase())
    return [
      ...(isLong ? [`${name} was cut to 64 KB.`] : []),
      ...(isColumn ? [] : [`${name} cannot be a column.`]),
    ]
  })
  const hasTime = !Number.isNaN(Date.parse(String(row['TimeGenerated'])))
  return hasTime ? problems : [...problems, 'A row has no TimeGenerated.']
}
