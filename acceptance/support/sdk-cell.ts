import {
  type CallerId,
  type FeatureId,
  type FormatId,
  noteOf,
  type NoteId,
  type Place,
} from '@gatehouse/tools/compatibility'
import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import type { UpstreamUrls } from '@gatehouse/tools/stack-models'

import { aiAnthropic, aiChat, aiResponses } from './sdk-ai.ts'
import { anthropic } from './sdk-anthropic.ts'
import type { Caller, Connection, Conversation } from './sdk-caller.ts'
import { openaiChat } from './sdk-openai-chat.ts'
import { openaiResponses } from './sdk-openai-responses.ts'
import { readSeen, type Seen } from './sdk-seen.ts'

const callersById: Record<CallerId, Caller> = {
  anthropic,
  openai_responses: openaiResponses,
  openai_chat: openaiChat,
  ai_anthropic: aiAnthropic,
  ai_responses: aiResponses,
  ai_chat: aiChat,
}

/** One cell of the table, with all that is needed to try it. */
export type Cell = Place & {
  /** What holds instead, where it is not simply the feature. */
  note: NoteId | null
  caller: CallerId
  client: Caller
  connection: Connection
  /** A conversation with the model of the cell. */
  open(): Conversation
  /** A prompt that is found again by `seen`, with what the upstream shall do about it. */
  prompt(script?: Script): string
  /** What the upstream got last of this cell's prompts. */
  seen(from?: FormatId): Promise<Seen>
}

export type Ground = { baseUrl: string; upstreamUrl: string; key: string }

export function openCell(feature: FeatureId, place: Place, ground: Ground): Cell {
  const { caller, format, mode } = place
  const marker = `<${feature} ${caller} ${format} ${mode}>`
  const client = callersById[caller]
  const connection = {
    ...{ baseUrl: ground.baseUrl, key: ground.key, isStreamed: mode === 'streamed' },
    model: feature === 'overloaded' ? failingModel(place) : modelOf(format),
  }
  return {
    ...place,
    note: noteOf(feature, place),
    client,
    connection,
    open: () => client.open(connection),
    prompt: (script) => `${marker}${script ? `\n#script ${JSON.stringify(script)}` : ''}`,
    async seen(from = format) {
      const response = await fetch(`${ground.upstreamUrl}/control/state`)
      const { lastRequests } = (await response.json()) as { lastRequests: { body: unknown }[] }
      const last = lastRequests.findLast(({ body }) => JSON.stringify(body).includes(marker))
      if (!last) throw new Error(`The upstream got no request of ${marker}.`)
      return readSeen(from, last.body as Record<string, unknown>)
    },
  }
}

/** Names that say nothing to a client: some decide by them what a model can do. */
export const modelOf = (format: FormatId) => `scripted-${format.replace('_', '-')}`
/** A cell that breaks its upstream has one of its own, because the gateway stops asking it. */
const failingModel = ({ caller, format, mode }: Place) => `failing-${caller}-${format}-${mode}`

/** One model for each format of an upstream, and those that fail. */
export const matrixModels =
  (places: readonly Place[]) =>
  ({ scripted }: UpstreamUrls) => {
    const toUpstream = (format: FormatId) => ({
      kind: format === 'messages' ? 'anthropic' : 'openai',
      base_url: `${scripted}/v1`,
      key: { env: 'UPSTREAM_KEY' },
      ...(format !== 'messages' && { protocols: [format] }),
    })
    const named = [
      ...new Map(places.map(({ format }) => [modelOf(format), format])),
      ...places.map((place) => [failingModel(place), place.format] as const),
    ]
    return {
      upstreams: Object.fromEntries(named.map(([id, format]) => [id, toUpstream(format)])),
      models: named.map(([id]) => ({
        ...{ id, display_name: id, owned_by: 'scripted' },
        ...{ context_tokens: 1_000_000, max_output_tokens: 100_000 },
        prices: { input: '3', output: '15', cached_input: '0.3', cache_write: '3.75' },
        upstreams: [{ upstream: id }],
      })),
    }
  }
