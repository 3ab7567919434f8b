import { type Logger, pino } from 'pino'

/** The log line of a request. */
export type RequestLine = {
  request_id: string
  client_request_id?: string | undefined
  method: string
  route: string
  status: number
  duration_ms: number
  outcome: 'answered' | 'hung_up'
  code?: string | undefined
  credential_kind?: string | undefined
  credential_id?: string | undefined
  organization_id?: string | undefined
  project_id?: string | undefined
  replayed?: boolean | undefined
  model?: string | undefined
  upstream?: string | undefined
  input_tokens?: number | undefined
  output_tokens?: number | undefined
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

const requestMembers = requestFields.map((name) => ({ name, start: `,"${name}":` }))

/** One line of JSON, written member by member: a serializer for any object takes several times as long. */
function requestText(line: RequestLine): string {
  let text = `{"level":30,"time":"${new Date().toISOString()}","event":"request"`
  for (const { name, start } of requestMembers) {
    const value = line[name]
    if (value === undefined) continue
    // The only field whose value comes from the caller.
    if (name === 'client_request_id') text += start + JSON.stringify(withoutSecrets(String(value)))
    else text += start + (typeof value === 'number' ? value : JSON.stringify(value))
  }
  return `${text}}\n`
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
    request(line) {
      if (logger.isLevelEnabled('info')) destination.write(requestText(line))
    },
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
  return (
    start
      .replaceAll(/gate_(adm|prj|ses|lnk|inv|dev)_[0-9A-Za-z]{8,64}/g, 'gate_$1_[removed]')
      .replaceAll(/eyJ[\w-]{8,4000}\.[\w-]{1,4000}\.[\w-]{0,4000}/g, '[removed token]')
      // `<password>` is what our own messages have in its place.
      .replaceAll(
        /(:\/\/[^\s:/]{0,200}:)(?!<password>@[^\s@]{0,4000}(?:\s|$))[^\s/]{1,4000}@/g,
        '$1[removed]@',
      )
      .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{4,4000}/gi, '$1 [removed]')
  )
}
