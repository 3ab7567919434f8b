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

import { aiCallers } from './ai.ts'
import { anthropic } from './anthropic.ts'
import type { Caller, Connection, Conversation } from './caller.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import { previousCallers } from './previous.ts'
import { readSeen, type Seen } from './seen.ts'

/** The clients by their release. */
const releases = {
  newest: {
    anthropic,
    openai_responses: openaiResponses,
    openai_chat: openaiChat,
    ...aiCallers,
  },
  previous: previousCallers,
} satisfies Record<string, Record<CallerId, Caller>>
export type Release = keyof typeof releases

/** One cell of the compatibility table, with everything needed to test it. */
export type Cell = Place & {
  /** The documented deviation, where the feature does not simply work. */
  note: NoteId | null
  caller: CallerId
  client: Caller
  connection: Connection
  /** A conversation with the model of the cell. */
  open(): Conversation
  /** A prompt that `seen` can find, with an optional script for the upstream. */
  prompt(script?: Script): string
  /** The last request that the upstream received with a prompt of this cell. */
  seen(from?: FormatId): Promise<Seen>
}

export type CellEnvironment = {
  baseUrl: string
  upstreamUrl: string
  key: string
  /** `newest` unless given. */
  release?: Release
}

export function openCell(feature: FeatureId, place: Place, environment: CellEnvironment): Cell {
  const { caller, format, mode } = place
  const marker = `<${feature} ${caller} ${format} ${mode}>`
  const client: Caller = releases[environment.release ?? 'newest'][caller]
  const connection = {
    baseUrl: environment.baseUrl,
    key: environment.key,
    isStreamed: mode === 'streamed',
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
      const response = await fetch(`${environment.upstreamUrl}/control/state`)
      const { lastRequests } = (await response.json()) as { lastRequests: { body: unknown }[] }
      const last = lastRequests.findLast(({ body }) => JSON.stringify(body).includes(marker))
      if (!last) throw new Error(`The upstream received no request with ${marker}.`)
      return readSeen(from, last.body as Record<string, unknown>)
    },
  }
}

/** Neutral names, because some clients derive from the name what a model can do. */
export const modelOf = (format: FormatId) => `scripted-${format.replace('_', '-')}`
/** A cell whose upstream fails has its own one, because the gateway stops calling it. */
const failingModel = ({ caller, format, mode }: Place) => `failing-${caller}-${format}-${mode}`

/** One model per upstream format, and one failing model per cell. */
export const matrixModels =
  (places: readonly Place[]) =>
  ({ scripted }: UpstreamUrls) => {
    const toUpstream = (format: FormatId) => ({
      kind: format === 'messages' ? 'anthropic' : 'openai',
      base_url: `${scripted}/v1`,
      key: { env: 'UPSTREAM_KEY' },
      ...(format !== 'messages' && { protocols: [format] }),
      // The upstream is on this machine and would get no media URLs; the matrix is about translation.
      media_urls: 'any',
    })
    const named = [
      ...new Map(places.map(({ format }) => [modelOf(format), format])),
      ...places.map((place) => [failingModel(place), place.format] as const),
    ]
    return {
      upstreams: Object.fromEntries(named.map(([id, format]) => [id, toUpstream(format)])),
      models: named.map(([id]) => ({
        id,
        display_name: id,
        owned_by: 'scripted',
        context_tokens: 1_000_000,
        max_output_tokens: 100_000,
        prices: { input: '3', output: '15', cached_input: '0.3', cache_write: '3.75' },
        upstreams: [{ upstream: id }],
      })),
    }
  }
