import { gunzipSync } from 'node:zlib'

import {
  type DestinationDouble,
  type DoubleAnswer,
  type DoubleRequest,
  startDouble,
} from './double.ts'
import { filterJson } from './filter-json.ts'

type ElasticOptions = {
  port?: number
  /** Which authorization is accepted. */
  authorization?: string
  pipelines?: readonly string[]
  /** Fields of numbers: a document with something else in one of them is refused. */
  numberFields?: readonly string[]
}
type Document = Record<string, unknown>
type Item = { status: number; error?: { type: string; reason: string } } & Document
type Action = { name: string; _index?: string; _id?: string }

export type ElasticDouble = DestinationDouble & {
  /** What each index or data stream has, by id. */
  readonly indices: Map<string, Map<string, Document>>
}

const product = { 'x-elastic-product': 'Elasticsearch', 'content-type': 'application/json' }
const contentTypes = /^application\/(x-ndjson|vnd\.elasticsearch\+x-ndjson; ?compatible-with=\d)$/
const indexName = /^[a-z0-9][a-z0-9._-]{0,254}$/
const bodyLimitBytes = 100 * 1024 * 1024

/** An Elasticsearch that only knows `_bulk`. Names such as `logs-…-…` are data streams. */
export async function startElasticDouble(options: ElasticOptions = {}): Promise<ElasticDouble> {
  const store = createStore(options)
  const { problems } = store

  function refuse(status: number, type: string, reason: string): DoubleAnswer {
    problems.push(reason)
    const error = { root_cause: [{ type, reason }], type, reason }
    return { status, headers: product, body: JSON.stringify({ error, status }) }
  }

  function answer(request: DoubleRequest): DoubleAnswer {
    const { method, url, headers } = request
    if (options.authorization !== undefined && headers.authorization !== options.authorization) {
      const reason = 'unable to authenticate user or API key for REST request [/_bulk]'
      return refuse(401, 'security_exception', reason)
    }
    if (url.pathname !== '/_bulk' || (method !== 'POST' && method !== 'PUT')) {
      return refuse(405, 'invalid_request', `no handler for [${method} ${url.pathname}]`)
    }
    if (!contentTypes.test(headers['content-type'] ?? '')) {
      return refuse(406, 'media_type_header_exception', 'Invalid media-type value on Content-Type')
    }
    const unknown = [...url.searchParams.keys()].filter((name) => !parameters.has(name))
    if (unknown.length > 0) {
      const reason = `request [/_bulk] contains unrecognized parameter: [${unknown.join()}]`
      return refuse(400, 'illegal_argument_exception', reason)
    }
    const pairs = readPairs(request)
    if (typeof pairs === 'string') return refuse(400, 'illegal_argument_exception', pairs)
    const items = pairs.map(({ action, document }) => ({
      [action.name]: store.perform(action, document, url.searchParams.get('pipeline')),
    }))
    const errors = items.some((item) => Object.values(item).some(({ error }) => error))
    const body = { took: 3, errors, items }
    const filter = url.searchParams.get('filter_path')
    const filtered = filter === null ? body : filterJson(body, filter)
    return { status: 200, headers: product, body: JSON.stringify(filtered) }
  }

  const started = await startDouble(answer, options.port)
  const { received, indices } = store
  return Object.assign(started, { received, problems, indices })
}

const parameters = new Set(['filter_path', 'pipeline', 'refresh', 'timeout', 'require_alias'])
const shards = { total: 2, successful: 1, failed: 0 }
const isDataStream = (name: string) => /^logs-[^-]+-[^-]+$/.test(name)

type Fault = { status: number; error: { type: string; reason: string } }
const fault = (status: number, type: string, reason: string): Fault => ({
  status,
  error: { type, reason },
})

/** What is wrong with an action before its document is looked for. */
function checkAction(
  { name, _index = '', _id = '' }: Action,
  document: Document,
  options: ElasticOptions,
  pipeline: string | null,
): Fault | undefined {
  if (!indexName.test(_index)) {
    return fault(400, 'invalid_index_name_exception', `Invalid index name [${_index}]`)
  }
  if (pipeline !== null && !options.pipelines?.includes(pipeline)) {
    const reason = `pipeline with id [${pipeline}] does not exist`
    return fault(400, 'illegal_argument_exception', reason)
  }
  if (isDataStream(_index)) {
    if (name !== 'create') {
      const reason = 'only write ops with an op_type of create are allowed in data streams'
      return fault(400, 'illegal_argument_exception', reason)
    }
    if (Number.isNaN(Date.parse(String(document['@timestamp'])))) {
      const reason = 'data stream timestamp field [@timestamp] is missing'
      return fault(400, 'document_parsing_exception', reason)
    }
  }
  const wrong = options.numberFields?.find((field) => typeof document[field] === 'string')
  if (wrong !== undefined) {
    const preview = `Preview of field's value: '${String(document[wrong])}'`
    const reason = `[1:1] failed to parse field [${wrong}] of type [long] in document with id '${_id}'. ${preview}`
    return fault(400, 'document_parsing_exception', reason)
  }
  return undefined
}

function createStore(options: ElasticOptions) {
  const received: Document[] = []
  const problems: string[] = []
  const indices: ElasticDouble['indices'] = new Map()

  function perform(action: Action, document: Document, pipeline: string | null): Item {
    const { name, _index = '', _id = '' } = action
    const wrong = checkAction(action, document, options, pipeline)
    if (wrong) {
      problems.push(wrong.error.reason)
      return { _index, _id, ...wrong }
    }
    const documents = indices.get(_index) ?? new Map<string, Document>()
    indices.set(_index, documents)
    if (name === 'create' && documents.has(_id)) {
      const reason = `[${_id}]: version conflict, document already exists (current version [1])`
      return { _index, _id, ...fault(409, 'version_conflict_engine_exception', reason) }
    }
    const status = documents.has(_id) ? 200 : 201
    documents.set(_id, document)
    received.push(document)
    return { _index, _id, _version: 1, result: 'created', _shards: shards, _seq_no: 0, status }
  }

  return { received, problems, indices, perform }
}

/** Actions with their documents, or what is wrong with the body. */
function readPairs({ headers, body }: DoubleRequest) {
  if (body.length > bodyLimitBytes) return 'The body is larger than 100 MB.'
  const isCompressed = headers['content-encoding'] === 'gzip'
  const text = (isCompressed ? gunzipSync(body) : body).toString()
  if (text === '') return 'request body is required'
  if (!text.endsWith('\n')) return 'The bulk request must be terminated by a newline [\\n]'
  const lines = text.slice(0, -1).split('\n')
  if (lines.length % 2 !== 0) return 'An action has no document.'
  const pairs: { action: Action; document: Document }[] = []
  for (let at = 0; at < lines.length; at += 2) {
    const [action, document] = [readObject(lines[at]), readObject(lines[at + 1])]
    const [name = ''] = Object.keys(action ?? {})
    if (!action || !document) return `Malformed line ${at + 1}, expected an object.`
    if (name !== 'create' && name !== 'index') return `Malformed action [${name}] in line ${at + 1}`
    pairs.push({ action: { name, ...(action[name] as object) }, document })
  }
  return pairs
}

function readObject(line: string | undefined): Document | undefined {
  try {
    const value: unknown = JSON.parse(line ?? '')
    return value !== null && typeof value === 'object' ? (value as Document) : undefined
  } catch {
    return undefined
  }
}
