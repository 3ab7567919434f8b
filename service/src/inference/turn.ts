/**
 * One model call in the form that every wire format is translated to and from. What a format has no
 * place for is left out; a call between equal formats does not pass through here (see protocol.ts).
 */
export type Turn = {
  /** In the caller's order: some clients put a block of their own first. */
  system: readonly string[]
  messages: readonly TurnMessage[]
  tools: readonly Tool[]
  toolChoice: ToolChoice | null
  canCallToolsInParallel: boolean | null
  /** As the caller asked; null when it did not say. */
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
  /** The caller's own name for its user. */
  user: string | null
}

export type TurnMessage = { role: 'user' | 'assistant'; parts: readonly Part[] }

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
  | { type: 'reasoning'; text: string; opaque: Opaque | null }
  | { type: 'refusal'; text: string }
  | ForeignPart

/**
 * Something that only an upstream of the caller's own format understands. It is counted and judged by its
 * JSON text, because it travels there; other formats leave it out.
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
  /** `text` is the document itself. */
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
  /** null: as much as the model likes. */
  effort: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | null
  budgetTokens: number | null
  isSummaryWanted: boolean
}

export type OutputFormat =
  | { type: 'json_object' }
  | { type: 'json_schema'; name: string; schema: Record<string, unknown>; isStrict: boolean | null }

/**
 * What only the model that made it can read: a signature over its reasoning, or the reasoning itself,
 * encrypted. It must come back unchanged, and only to an upstream of the same origin.
 */
export type Opaque = {
  origin: ProtocolName
  kind: 'signature' | 'redacted' | 'encrypted'
  data: string
  /** The id of the item it belongs to, where the origin gives one. */
  id: string | null
}

/** The three wire formats; callers and upstreams speak the same three. */
export const protocolNames = ['messages', 'responses', 'chat_completions'] as const
export type ProtocolName = (typeof protocolNames)[number]
