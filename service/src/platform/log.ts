import { type Logger, pino } from 'pino'

/** The log line of a request. */
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

/** The allow list: no other member of a request is logged, whatever an object carries at run time. */
const requestFields = [
  'request_id',
  'client_request_id',
  'method',
  'route',
  'status',
  'duration_ms',
  'outcome',
  'code',
  'credential_kind',
  'credential_id',
  'organization_id',
  'project_id',
  'replayed',
  'model',
  'upstream',
  'input_tokens',
  'output_tokens',
] as (keyof RequestLine)[]

function allowed(line: RequestLine): Record<string, unknown> {
  const picked: Record<string, unknown> = {}
  for (const name of requestFields) if (line[name] !== undefined) picked[name] = line[name]
  // The only field whose value comes from the caller.
  if (line.client_request_id) picked['client_request_id'] = withoutSecrets(line.client_request_id)
  return picked
}

/** `code` is stable and in snake_case (tools/log-codes.test.ts), so that alarms can match it. */
export type Log = {
  request(line: RequestLine): void
  /** An error that an operator should look at. Secrets are removed from `thrown` before it is written. */
  problem(code: string, thrown: unknown, requestId?: string): void
  event(code: string, fields?: Record<string, string | number | boolean>): void
}

export type LogLevel = 'info' | 'warn' | 'error' | 'silent'

export function createLog(level: LogLevel, destination: { write(line: string): void }): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const logger: Logger = pino(options, destination)
  return {
    request: (line) => logger.info({ event: 'request', ...allowed(line) }),
    problem: (code, thrown, requestId) =>
      logger.error({
        event: 'problem',
        what: code,
        ...(requestId && { request_id: requestId }),
        ...describe(thrown),
      }),
    event: (code, fields) => logger.info({ event: code, ...fields }),
  }
}

/** Name, code, message and stack of an error and of its causes, without secrets. */
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

/** The second line of defence behind the allow list: removes keys, tokens and passwords in URLs from any text. */
export function withoutSecrets(text: string): string {
  // A long text is cut at white space, because half a secret would not match the patterns below.
  const [start = ''] = /^[^]{0,4000}(?=\s|$)/.exec(text) ?? []
  return start
    .replaceAll(/gate_(adm|prj)_[0-9A-Za-z]{8,64}/g, 'gate_$1_[removed]')
    .replaceAll(/eyJ[\w-]{8,4000}\.[\w-]{1,4000}\.[\w-]{0,4000}/g, '[removed token]')
    .replaceAll(/(:\/\/[^\s:/]{0,200}:)[^\s/]{1,4000}@/g, '$1[removed]@')
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{4,4000}/gi, '$1 [removed]')
}
