import {
  answerJson,
  findRecordProblems,
  findRequestProblems,
  isMembers,
  isUuid,
  type Members,
  parseJson,
  readText,
} from './checks.ts'
import { type DestinationDouble, type DoubleRequest, startDouble } from './double.ts'

type SplunkOptions = {
  token: string
  port?: number
  /** The indexes that the token may write to; the default one is used where an event names none. */
  indexes?: readonly string[]
  /** The token wants acknowledgements, and answers true when it was asked this often. */
  ackAfterPolls?: number
}

export type SplunkDouble = DestinationDouble & {
  /** The metadata of each event, without the event. */
  readonly envelopes: Members[]
  /** How often acknowledgements were asked for. */
  readonly polls: () => number
}

const eventPath = '/services/collector/event'
const ackPath = '/services/collector/ack'
const metadata = new Set(['time', 'host', 'source', 'sourcetype', 'index', 'event', 'fields'])

const hec = (status: number, code: number, text: string, more: Members = {}) =>
  answerJson(status, { text, code, ...more })

/** An HTTP Event Collector with one token. */
export async function startSplunkDouble(options: SplunkOptions): Promise<SplunkDouble> {
  const { token, port, indexes = ['main'], ackAfterPolls } = options
  const [received, problems, envelopes]: [Members[], string[], Members[]] = [[], [], []]
  const acks = createAcks(ackAfterPolls, problems)

  function takeEvents(request: DoubleRequest) {
    const channel = request.headers['x-splunk-request-channel']
    if (ackAfterPolls !== undefined && channel === undefined) {
      return hec(400, 10, 'Data channel is missing')
    }
    if (channel !== undefined && !isUuid(channel)) return hec(400, 11, 'Invalid data channel')
    problems.push(...findRequestProblems(request, { path: eventPath, encoding: 'gzip' }))
    const text = readText(request)
    if (text === '') return hec(400, 5, 'No data')
    const events = splitObjects(text ?? '')
    if (events === undefined || events.length === 0) return hec(400, 6, 'Invalid data format')
    for (const [index, envelope] of events.entries()) {
      const refusal = checkEnvelope(envelope, indexes)
      if (refusal) return hec(400, ...refusal, { 'invalid-event-number': index })
    }
    for (const { event, ...envelope } of events) {
      problems.push(...findEnvelopeProblems(envelope), ...findRecordProblems(event as Members))
      received.push(event as Members)
      envelopes.push(envelope)
    }
    if (ackAfterPolls === undefined) return hec(200, 0, 'Success')
    return hec(200, 0, 'Success', { ackId: acks.open(channel as string) })
  }

  const double = await startDouble((request) => {
    if (request.method !== 'POST') return { status: 405 }
    const take = { [eventPath]: takeEvents, [ackPath]: acks.tell }[request.url.pathname]
    if (!take) return { status: 404, body: 'The requested URL was not found on this server.' }
    return refuseToken(request, token) ?? take(request)
  }, port)
  return { ...double, received, problems, envelopes, polls: acks.polls }
}

function refuseToken({ headers }: DoubleRequest, token: string) {
  const { authorization } = headers
  if (authorization === undefined) return hec(401, 2, 'Token is required')
  if (!authorization.startsWith('Splunk ')) return hec(401, 3, 'Invalid authorization')
  if (authorization !== `Splunk ${token}`) return hec(403, 4, 'Invalid token')
  return undefined
}

/** The batches that wait for an acknowledgement. */
function createAcks(afterPolls: number | undefined, problems: string[]) {
  /** By channel and id: how often it was asked for. */
  const asked = new Map<string, number>()
  let polls = 0

  function isAcknowledged(key: string) {
    const count = asked.get(key)
    if (count === undefined) problems.push(`no batch has the acknowledgement ${key}`)
    else asked.set(key, count + 1)
    return count !== undefined && afterPolls !== undefined && count + 1 >= afterPolls
  }

  return {
    polls: () => polls,
    open(channel: string) {
      const ackId = asked.size
      asked.set(`${channel} ${ackId}`, 0)
      return ackId
    },
    tell(request: DoubleRequest) {
      if (afterPolls === undefined) return hec(400, 14, 'ACK is disabled')
      const channel = request.url.searchParams.get('channel')
      if (channel === null) return hec(400, 10, 'Data channel is missing')
      problems.push(...findRequestProblems(request, { path: ackPath, encoding: undefined }))
      const body = parseJson(readText(request))
      const ids = isMembers(body) ? body['acks'] : undefined
      if (!Array.isArray(ids)) return hec(400, 6, 'Invalid data format')
      polls += 1
      const told = ids.map(
        (id) => [String(id), isAcknowledged(`${channel} ${String(id)}`)] as const,
      )
      return answerJson(200, { acks: Object.fromEntries(told) })
    },
  }
}

function checkEnvelope(
  envelope: Members,
  indexes: readonly string[],
): [code: number, text: string] | undefined {
  const { event, index } = envelope
  if (event === undefined) return [12, 'Event field is required']
  if (event === '' || event === null) return [13, 'Event field cannot be blank']
  if (!isMembers(event)) return [6, 'Invalid data format']
  if (index !== undefined && !indexes.includes(index as string)) return [7, 'Incorrect index']
  if (envelope['fields'] !== undefined) return [15, 'Error in handling indexed fields']
  return undefined
}

function findEnvelopeProblems(envelope: Members): string[] {
  const { time, ...texts } = envelope
  const unknown = Object.keys(envelope).filter((name) => !metadata.has(name))
  const wrong = Object.entries(texts).filter(([, value]) => typeof value !== 'string' || !value)
  return [
    ...unknown.map((name) => `the envelope has ${name}`),
    ...wrong.map(([name]) => `${name} is no text`),
    ...(typeof time === 'number' && time > 1e9 && time < 1e10 ? [] : ['time is not in seconds']),
  ]
}

/** JSON objects one after another. A brace in a text is part of the text. */
function splitObjects(text: string): Members[] | undefined {
  const objects: Members[] = []
  let [depth, start, isText] = [0, 0, false]
  for (let index = 0; index < text.length; index += 1) {
    const letter = text[index]
    if (isText && letter === '\\') index += 1
    else if (letter === '"') isText = !isText
    else if (isText) continue
    else if (letter === '{') depth += 1
    else if (letter === '}') depth -= 1
    if (depth !== 0 || isText) continue
    const parsed = parseJson(text.slice(start, index + 1))
    if (!isMembers(parsed)) return undefined
    objects.push(parsed)
    start = index + 1
  }
  return start === text.length ? objects : undefined
}
