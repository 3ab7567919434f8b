import {
  answerJson,
  findRecordProblems,
  findRequestProblems,
  isMembers,
  type Members,
  parseJson,
  readText,
} from './checks.ts'
import { type DestinationDouble, type DoubleRequest, startDouble } from './double.ts'

type OtlpOptions = {
  port?: number
  /** A header that has to be there. */
  header?: { name: string; value: string }
  /** Records that are rejected, while the others of the request are taken. */
  rejects?: (record: Members) => boolean
}

export type OtlpDouble = DestinationDouble & {
  /** The log records, without their attributes. */
  readonly logs: Members[]
  readonly serviceNames: string[]
}

const nanoseconds = /^\d{19}$/
const valueKinds = new Set(['stringValue', 'boolValue', 'intValue', 'doubleValue', 'arrayValue'])
const severities: Record<number, string> = { 9: 'INFO', 13: 'WARN' }

/** A collector that takes logs by OTLP over HTTP in JSON. */
export async function startOtlpDouble(options: OtlpOptions = {}): Promise<OtlpDouble> {
  const { port, header, rejects = () => false } = options
  const [received, problems, logs]: [Members[], string[], Members[]] = [[], [], []]
  const serviceNames: string[] = []

  function takeRecords(records: readonly Members[]) {
    let rejected = 0
    for (const { attributes, ...log } of records) {
      const record = readAttributes(attributes, problems)
      if (rejects(record)) {
        rejected += 1
        continue
      }
      problems.push(...findLogProblems(log), ...findRecordProblems(record))
      received.push(record)
      logs.push(log)
    }
    const errorMessage = `${rejected} were rejected`
    return rejected === 0 ? {} : { rejectedLogRecords: String(rejected), errorMessage }
  }

  function answer(request: DoubleRequest) {
    if (request.url.pathname !== '/v1/logs') return { status: 404, body: '404 page not found' }
    if (request.method !== 'POST') return { status: 405, body: '405 method not allowed' }
    if (header && request.headers[header.name.toLowerCase()] !== header.value) {
      return answerJson(401, { code: 16, message: 'no or wrong credentials' })
    }
    problems.push(...findRequestProblems(request, { path: '/v1/logs', encoding: 'gzip' }))
    const sent = readRequest(parseJson(readText(request)))
    if (!sent)
      return answerJson(400, { code: 3, message: 'the request is no ExportLogsServiceRequest' })
    serviceNames.push(sent.serviceName)
    return answerJson(200, { partialSuccess: takeRecords(sent.records) })
  }

  const double = await startDouble(answer, port)
  return { ...double, received, problems, logs, serviceNames }
}

function readRequest(request: unknown) {
  const [resourceLogs, ...others] = listIn(request, 'resourceLogs')
  const scopes = listIn(resourceLogs, 'scopeLogs')
  if (!isMembers(resourceLogs) || others.length > 0 || scopes.length !== 1) return undefined
  const named = listIn(resourceLogs['resource'], 'attributes').filter(isMembers)
  const value = named.find(({ key }) => key === 'service.name')?.['value']
  const serviceName = isMembers(value) ? value['stringValue'] : undefined
  const records = listIn(scopes[0], 'logRecords')
  if (typeof serviceName !== 'string' || !records.every(isMembers)) return undefined
  return { serviceName, records }
}

const listIn = (value: unknown, name: string): unknown[] =>
  isMembers(value) && Array.isArray(value[name]) ? value[name] : []

function findLogProblems(log: Members): string[] {
  const { timeUnixNano, observedTimeUnixNano, severityNumber, severityText, eventName, body } = log
  return [
    !nanoseconds.test(String(timeUnixNano)) && 'timeUnixNano is no text of nanoseconds',
    !nanoseconds.test(String(observedTimeUnixNano)) && 'observedTimeUnixNano is wrong',
    typeof timeUnixNano !== 'string' && 'timeUnixNano is no text',
    severities[Number(severityNumber)] !== severityText && 'the severity is contradictory',
    typeof eventName !== 'string' && 'eventName is no text',
    !(isMembers(body) && typeof body['stringValue'] === 'string') && 'the body is no text',
  ].filter((problem) => problem !== false)
}

/** The record that the attributes were made of: objects are JSON texts in them. */
function readAttributes(attributes: unknown, problems: string[]): Members {
  const list = Array.isArray(attributes) ? attributes.filter(isMembers) : []
  const keys = list.map(({ key }) => String(key))
  if (list.length === 0 || new Set(keys).size !== list.length) problems.push('keys are not unique')
  return Object.fromEntries(
    list.map(({ value }, index) => [keys[index], readValue(value, problems)]),
  )
}

function readValue(value: unknown, problems: string[]): unknown {
  const [[kind, content] = ['', null], ...others] = Object.entries(isMembers(value) ? value : {})
  if (kind === '') return null
  if (!valueKinds.has(kind) || others.length > 0) problems.push(`a value is ${kind}`)
  if (kind === 'intValue') {
    if (typeof content !== 'string') problems.push('an integer is no text')
    return Number(content)
  }
  if (kind === 'arrayValue')
    return listIn(content, 'values').map((item) => readValue(item, problems))
  const isJson = typeof content === 'string' && /^[[{]/.test(content)
  return isJson ? parseJson(content) : content
}
