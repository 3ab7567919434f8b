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

type DatadogOptions = { apiKey: string; port?: number; now?: () => Date }

export type DatadogDouble = DestinationDouble & {
  /** What Datadog takes out of each log: source, service, tags, host, message, status and time. */
  readonly logs: Members[]
}

const [logsMax, logMaxBytes, requestMaxBytes] = [1000, 1_000_000, 5_000_000]
const oldestMs = 18 * 60 * 60 * 1000
/** The first of them that a log has is its time. */
const times = ['timestamp', 'date', '_timestamp', 'Timestamp', 'eventTime', 'published_date']
const own = ['ddsource', 'service', 'ddtags', 'hostname', 'message', 'status', 'timestamp']

const refuse = (status: number, detail: string) =>
  answerJson(status, { errors: [{ status: String(status), title: detail, detail }] })

/** The intake of logs of Datadog. */
export async function startDatadogDouble(options: DatadogOptions): Promise<DatadogDouble> {
  const { apiKey, port, now = () => new Date() } = options
  const [received, problems, logs]: [Members[], string[], Members[]] = [[], [], []]

  function take(log: Members) {
    const size = Buffer.byteLength(JSON.stringify(log))
    if (size > logMaxBytes) problems.push(`a log of ${size} bytes was cut`)
    const taken = Object.fromEntries(Object.entries(log).filter(([name]) => own.includes(name)))
    const time = times.find((name) => log[name] !== undefined)
    const ageMs = time === undefined ? 0 : now().getTime() - Date.parse(String(log[time]))
    if (!(ageMs <= oldestMs)) {
      problems.push(`a log was dropped: its ${time} is too old`)
      return
    }
    problems.push(...findLogProblems(taken))
    const { gatehouse_record: moved, ...rest } = log
    const members = Object.entries(rest).filter(([name]) => !own.includes(name))
    const record = { ...Object.fromEntries(members), ...(isMembers(moved) && moved) }
    problems.push(...findRecordProblems(record))
    received.push(record)
    logs.push(taken)
  }

  function answer(request: DoubleRequest) {
    if (request.url.pathname !== '/api/v2/logs') return refuse(404, 'Not Found')
    if (request.method !== 'POST') return refuse(405, 'Method Not Allowed')
    const key = request.headers['dd-api-key']
    if (key === undefined) return refuse(401, 'Unauthorized')
    if (key !== apiKey) return refuse(403, 'Forbidden')
    problems.push(...findRequestProblems(request, { path: '/api/v2/logs', encoding: 'gzip' }))
    const text = readText(request)
    if (Buffer.byteLength(text ?? '') > requestMaxBytes) return refuse(413, 'Payload too large')
    const list = parseJson(text)
    if (!Array.isArray(list) || !list.every(isMembers)) return refuse(400, 'Invalid JSON')
    if (list.length > logsMax) return refuse(413, 'Too many logs')
    list.forEach(take)
    return answerJson(202, {})
  }

  const double = await startDouble(answer, port)
  return { ...double, received, problems, logs }
}

function findLogProblems(log: Members): string[] {
  const wanted = ['ddsource', 'service', 'message', 'status']
  return [
    ...wanted.filter((name) => typeof log[name] !== 'string' || !log[name]),
    ...['ddtags', 'hostname'].filter((name) => !['string', 'undefined'].includes(typeof log[name])),
  ].map((name) => `${name} is no text`)
}
