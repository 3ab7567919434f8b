import { type Logger, pino } from 'pino'

/** The one line per request. */
export type RequestLine = {
  request_id: string
  client_request_id?: string
  method: string
  route: string
  status: number
  duration_ms: number
  outcome: 'answered' | 'hung_up'
  code?: string
  credential_kind?: string
  credential_id?: string
  organization_id?: string
  project_id?: string
  replayed?: boolean
  model?: string
  upstream?: string
  input_tokens?: number
  output_tokens?: number
}

/** The allow list: nothing else about a request is ever logged, whatever an object may carry. */
const requestFields = [
  ...['request_id', 'client_request_id', 'method', 'route', 'status', 'duration_ms', 'outcome'],
  ...['code', 'credential_kind', 'credential_id', 'organization_id', 'project_id', 'replayed'],
  ...['model', 'upstream', 'input_tokens', 'output_tokens'],
] as (keyof RequestLine)[]

function allowed(line: RequestLine): Record<string, unknown> {
  const picked: Record<string, unknown> = {}
  for (const name of requestFields) if (line[name] !== undefined) picked[name] = line[name]
  // The only field that a caller writes.
  if (line.client_request_id) picked['client_request_id'] = withoutSecrets(line.client_request_id)
  return picked
}

export type Log = {
  request(line: RequestLine): void
  /** Something a person should look at. `thrown` may hold anything; what leaves is cleaned. */
  problem(what: string, thrown: unknown, requestId?: string): void
  event(what: string, fields?: Record<string, string | number | boolean>): void
}

export type LogLevel = 'info' | 'warn' | 'error' | 'silent'

export function createLog(level: LogLevel, destination?: { write(line: string): void }): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  // Written at once: what waits until the end is flushed there, and with nobody left to read it, for ever.
  const standardOutput = () => pino.destination({ fd: 1, sync: true })
  const logger: Logger = pino(options, destination ?? standardOutput())
  return {
    request: (line) => logger.info({ event: 'request', ...allowed(line) }),
    problem: (what, thrown, requestId) =>
      logger.error({
        event: 'problem',
        what,
        ...(requestId && { request_id: requestId }),
        ...describe(thrown),
      }),
    event: (what, fields) => logger.info({ event: what, ...fields }),
  }
}

/** Name, code, cleaned message and our own stack lines of an error and of what caused it. */
function describe(thrown: unknown, depth = 0): Record<string, unknown> {
  if (!(thrown instanceof Error)) return { error: 'not an error object' }
  const { code, cause } = thrown as { code?: unknown; cause?: unknown }
  return {
    error: thrown.name,
    ...(typeof code === 'string' && { code: withoutSecrets(code) }),
    message: withoutSecrets(thrown.message),
    stack: withoutSecrets((thrown.stack ?? '').split('\n').slice(1, 12).join('\n')),
    ...(cause !== undefined && depth < 3 && { cause: describe(cause, depth + 1) }),
  }
}

/** The second line of defence: keys, tokens and passwords in URLs are cut out of any text. */
export function withoutSecrets(text: string): string {
  // A long text ends at white space: half a secret would not be recognised any more.
  const [start = ''] = /^[^]{0,4000}(?=\s|$)/.exec(text) ?? []
  return start
    .replaceAll(/gate_(adm|prj)_[0-9A-Za-z]{8,64}/g, 'gate_$1_[removed]')
    .replaceAll(/eyJ[\w-]{8,4000}\.[\w-]{1,4000}\.[\w-]{0,4000}/g, '[removed token]')
    .replaceAll(/(:\/\/[^\s:/]{0,200}:)[^\s/]{1,4000}@/g, '$1[removed]@')
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{4,4000}/gi, '$1 [removed]')
}
