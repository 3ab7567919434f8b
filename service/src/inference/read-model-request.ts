import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { Json } from '#formats/answer.ts'
import { fieldTables } from '#formats/fields/field-tables.ts'
import {
  findFeatures,
  hasUnseenInput,
  leastWebSearches,
  mostWebSearches,
} from '#formats/fields/find-features.ts'
import type { CallerFormat } from '#formats/format.ts'
import type { Turn } from '#formats/turn.ts'
import { readOpenJson } from '#http/read-json.ts'
import { explainIssue, toParam } from '#http/validate.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'

import { refuseBrokenImages } from './check-images.ts'
import type { InputCounting } from './count/input-counting.ts'
import type { ModelRequest, ParsedRequest } from './model-request.ts'
import { refuseFeatures, refuseFurtherModels, refuseUnsent } from './refuse-features.ts'
import {
  type Catalogue,
  type CatalogueModel,
  modelNotFound,
  onlyAllowed,
} from './upstreams/catalogue.ts'

export type ReadDeps = {
  catalogue: () => Catalogue
  counting: Pick<InputCounting, 'estimate'>
}

type Sent = {
  endpoint: Endpoint
  format: CallerFormat
  bytes: Buffer | null
  /** Headers that are passed on to an upstream of the same format. */
  headers: Readonly<Record<string, string>>
  isAnonymous: boolean
  /** The models that the caller may use; null: all of them. */
  allowedModels: readonly string[] | null
  /** The organization whose share of the counting threads is used. */
  owner: string
  cancellation: Cancellation
}

/** Reads a call's body. Errors are returned and not thrown, because the attempt must be counted before it is refused. */
export async function readModelRequest(deps: ReadDeps, sent: Sent): Promise<ParsedRequest> {
  try {
    return { ok: true, request: await read(deps, sent) }
  } catch (error) {
    if (error instanceof ApiError) return { ok: false, error }
    throw error
  }
}

async function read({ catalogue, counting }: ReadDeps, sent: Sent): Promise<ModelRequest> {
  const { owner, cancellation } = sent
  const asker = {
    owner,
    get signal() {
      return cancellation.signal
    },
  }
  const request = await runInTurns(readInSteps(catalogue, sent), asker)
  return { ...request, estimate: await counting.estimate(request, { owner, cancellation }) }
}

/** A step may take as long as the parser needs for a large body. Other calls run between the steps. */
function* readInSteps(
  catalogue: () => Catalogue,
  { endpoint, format, bytes, headers, isAnonymous, allowedModels }: Sent,
): Steps<Omit<ModelRequest, 'estimate'>> {
  if (!bytes || bytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const body = yield* readBody(endpoint, bytes)
  yield
  const turn = format.readTurn(body)
  yield
  const modelName = String(body['model'])
  const known = onlyAllowed(catalogue(), allowedModels)
  const model = findModel(known, modelName)
  refuseUnsupported(turn, model)
  refuseBrokenImages(turn, body)
  yield
  const asked = findFeatures(fieldTables[format.name], body, headers)
  refuseFeatures(asked, model, isAnonymous)
  if (allowedModels !== null) refuseFurtherModels(asked, known)
  if (isAnonymous) refuseUnsent(turn)
  const wantedTokens = turn.maxOutputTokens ?? model.defaultOutputTokens
  return {
    body,
    turn,
    model,
    modelName,
    isStreamed: body['stream'] === true,
    hasUnseenInput: hasUnseenInput(body, asked),
    maxOutputTokens: Math.min(wantedTokens, model.maxOutputTokens),
    webSearchesMax: asked.some(({ feature }) => feature === 'web_search')
      ? mostWebSearches(body)
      : 0,
    webSearchesMin: leastWebSearches(body),
  }
}

/** Unknown members are forwarded, so only the known ones are checked. */
function* readBody({ body: schema }: Endpoint, bytes: Buffer): Steps<Json> {
  const body = yield* readOpenJson(bytes)
  yield
  const result = schema?.safeParse(body)
  if (result?.success === false) {
    const [issue] = result.error.issues
    const { path, rule } = issue ? explainIssue(issue, body) : { path: [], rule: 'is not valid' }
    const name = path.map(String).join('.').slice(0, 120) || 'The body'
    throw new ApiError('invalid_request', `${name} ${rule}.`, { param: toParam('body', path) })
  }
  return body as Json
}

export function findModel(catalogue: Catalogue, name: string): CatalogueModel {
  const model = catalogue.find(name)
  if (model) return model
  throw modelNotFound(name, 'model')
}

/** 400 for a turn that needs a capability that the model does not have according to the catalogue. */
function refuseUnsupported(turn: Turn, { id, capabilities }: CatalogueModel) {
  const has = (type: string) =>
    turn.messages.some(({ parts }) => parts.some((part) => part.type === type))
  const unmet =
    (!capabilities.tools && turn.tools.length > 0 && 'call tools') ||
    (!capabilities.images && has('image') && 'read images') ||
    (!capabilities.documents && has('document') && 'read documents') ||
    (!capabilities.jsonSchema &&
      turn.outputFormat?.type === 'json_schema' &&
      'follow a JSON schema')
  if (unmet) throw new ApiError('invalid_request', `The model '${id}' cannot ${unmet}.`)
}
