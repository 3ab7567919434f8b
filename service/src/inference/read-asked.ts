import type { Endpoint } from '@gatehouse/contract/endpoint'

import { readJson } from '#http/read-json.ts'
import { explainIssue, toParam } from '#http/validate.ts'
import { ApiError } from '#platform/api-error.ts'

import type { Json } from './answer.ts'
import type { Asked } from './call.ts'
import type { InputCounting } from './count/input-counting.ts'
import type { Protocol } from './protocol.ts'
import type { Turn } from './turn.ts'
import type { Catalogue, CatalogueModel } from './upstreams/catalogue.ts'

export type ReadTools = {
  catalogue: () => Catalogue
  counting: Pick<InputCounting, 'estimate'>
}

type Sent = { endpoint: Endpoint; protocol: Protocol; bytes: Buffer | null; signal: AbortSignal }

/** Reads a call's body. What is wrong with it is returned, not thrown: the attempt is counted first. */
export async function readAsked(tools: ReadTools, sent: Sent): Promise<Asked | ApiError> {
  try {
    const request = readRequest(sent.endpoint, sent.bytes)
    const turn = sent.protocol.readTurn(request)
    const modelName = String(request['model'])
    const model = findModel(tools.catalogue(), modelName)
    refuseWhatItCannot(turn, model)
    const asked = turn.maxOutputTokens ?? model.default_output_tokens
    return {
      request,
      turn,
      model,
      modelName,
      isStreamed: request['stream'] === true,
      estimate: await tools.counting.estimate(turn, model, sent.signal),
      maxOutputTokens: Math.min(asked, model.max_output_tokens),
    }
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** Open bodies: members we do not know travel on, so only what we do know is judged (G4.47). */
function readRequest({ body: schema }: Endpoint, bytes: Buffer | null): Json {
  if (!bytes || bytes.length === 0) throw new ApiError('invalid_json', 'The body is empty.')
  const request = readJson(bytes, { isOpen: true })
  const result = schema?.safeParse(request)
  if (result?.success === false) {
    const [issue] = result.error.issues
    const { path, rule } = issue ? explainIssue(issue, request) : { path: [], rule: 'is not valid' }
    const name = path.map(String).join('.').slice(0, 120) || 'The body'
    throw new ApiError('invalid_request', `${name} ${rule}.`, { param: toParam('body', path) })
  }
  return request as Json
}

export function findModel(catalogue: Catalogue, name: string): CatalogueModel {
  const model = catalogue.find(name)
  if (model) return model
  throw new ApiError(
    'model_not_found',
    `There is no model '${name.slice(0, 100)}'; GET /v1/models lists those you can call.`,
    { param: 'body.model' },
  )
}

function refuseWhatItCannot(turn: Turn, { id, capabilities }: CatalogueModel) {
  const parts = turn.messages.flatMap((message) => message.parts)
  const has = (type: string) => parts.some((part) => part.type === type)
  const wishes: readonly (readonly [boolean, boolean, string])[] = [
    [capabilities.tools, turn.tools.length > 0, 'call tools'],
    [capabilities.images, has('image'), 'read images'],
    [capabilities.documents, has('document'), 'read documents'],
    [capabilities.json_schema, turn.outputFormat?.type === 'json_schema', 'follow a JSON schema'],
  ]
  const wish = wishes.find(([can, isAsked]) => isAsked && !can)
  if (wish) throw new ApiError('invalid_request', `The model '${id}' cannot ${wish[2]}.`)
}
