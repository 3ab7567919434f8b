import type { UpstreamFormatName } from './format-name.ts'

/**
 * The neutral form of a request, to and from which every format is translated. What a format has no member for
 * is left out. Between equal formats the request itself is forwarded instead (see format.ts).
 */
export type Turn = {
  /** In the caller's order: some clients rely on their first block being first. */
  system: readonly string[]
  messages: readonly TurnMessage[]
  tools: readonly Tool[]
  toolChoice: ToolChoice | null
  canCallToolsInParallel: boolean | null
  /** The caller's own limit; null where it gave none. */
  maxOutputTokens: number | null
  temperature: number | null
  topP: number | null
  topK: number | null
  presencePenalty: number | null
  frequencyPenalty: number | null
  seed: number | null
  stopSequences: readonly string[]
  reasoning: Reasoning | null
  outputFormat: OutputFormat | null
  /** The caller's own id for its user. */
  user: string | null
  /**
   * Texts that stand outside of messages and tools: stop sequences, metadata, and what is no id or setting where one belongs.
   * They are judged, because upstreams get them, and not counted, because models do not read them.
   */
  other: readonly string[]
}

/** `system`: instructions between other messages, which have parts of text only. */
export type TurnMessage = { role: 'user' | 'assistant' | 'system'; parts: readonly Part[] }

export type Part =
  | TextPart
  | ImagePart
  | DocumentPart
  | { type: 'tool_call'; id: string; name: string; /** JSON text. */ arguments: string }
  | {
      type: 'tool_result'
      callId: string
      parts: readonly ContentPart[]
      isError: boolean
    }
  | { type: 'reasoning'; text: string; opaque: OpaqueState | null }
  | { type: 'refusal'; text: string }
  | ForeignPart

/**
 * A part that only upstreams of the caller's own format understand. It is counted and judged by its JSON text,
 * because it is forwarded to them; other formats leave it out.
 */
export type ForeignPart = { type: 'foreign'; text: string }

export type ContentPart = TextPart | ImagePart | DocumentPart

export type TextPart = { type: 'text'; text: string }

export type ImagePart = {
  type: 'image'
  source: Source
  detail: 'auto' | 'low' | 'high' | null
}

export type DocumentPart = {
  type: 'document'
  /** A source of type `text` is the document itself. */
  source: Source | { type: 'text'; text: string }
  title: string | null
}

export type Source =
  | { type: 'base64'; mediaType: string; data: string }
  | { type: 'url'; url: string }
  | { type: 'file'; id: string }

export type Tool = {
  name: string
  description: string | null
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>
  isStrict: boolean | null
}

export type ToolChoice = { type: 'auto' } | { type: 'required' } | { type: 'none' } | NamedTool
type NamedTool = { type: 'tool'; name: string }

export type Reasoning = {
  /** null: the model decides. */
  effort: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null
  budgetTokens: number | null
  isSummaryWanted: boolean
}

export type OutputFormat =
  | { type: 'json_object' }
  | { type: 'json_schema'; name: string; schema: Record<string, unknown>; isStrict: boolean | null }

/**
 * State that only the model which made it can read: a signature over its reasoning, or the reasoning itself,
 * encrypted. It must be sent back unchanged, and only to an upstream of the same origin.
 */
export type OpaqueState = {
  /** The format of the upstream that made it. */
  origin: UpstreamFormatName
  kind: 'signature' | 'redacted' | 'encrypted'
  data: string
  /** The id of the item it belongs to, where the origin has one. */
  id: string | null
}

/** A turn in which a caller has set nothing. */
export const emptyTurn: Turn = {
  system: [],
  messages: [],
  tools: [],
  toolChoice: null,
  canCallToolsInParallel: null,
  maxOutputTokens: null,
  temperature: null,
  topP: null,
  topK: null,
  presencePenalty: null,
  frequencyPenalty: null,
  seed: null,
  stopSequences: [],
  reasoning: null,
  outputFormat: null,
  user: null,
  other: [],
}
