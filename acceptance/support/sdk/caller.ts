import { z } from 'zod'

// One interface to every client, so that the test of a feature is written once and runs with all of them.

export type Content =
  | { type: 'text'; text: string }
  | { type: 'image'; base64: string }
  | { type: 'image'; url: string }
  | { type: 'pdf'; base64: string; title: string }
  | { type: 'text_document'; text: string; title: string }

export const tools = {
  weather: {
    description: 'The weather of a city',
    schema: z.object({ city: z.string() }),
    parameters: {
      type: 'object' as const,
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
  },
  clock: {
    description: 'The time in a zone',
    schema: z.object({ zone: z.string() }),
    parameters: {
      type: 'object' as const,
      properties: { zone: { type: 'string' } },
      required: ['zone'],
      additionalProperties: false,
    },
  },
}
export type ToolName = keyof typeof tools
export const toolNames = Object.keys(tools) as ToolName[]

/** The schema of structured answers. */
export const Place = z.object({ name: z.string(), people: z.int(), isCapital: z.boolean() })

export type ToolChoice = 'auto' | 'required' | 'none' | { name: ToolName }

export type RequestOptions = {
  /** Instead of the model of the connection. */
  model?: string
  system?: string
  maxTokens?: number
  stop?: string[]
  topP?: number
  hasTools?: boolean
  toolChoice?: ToolChoice
  isThinking?: boolean
  /** Requests a `Place` with the client's own helper. */
  isStructured?: boolean
}

/** An answer as a client parsed it, in a common form; only `stop` is the client's own value. */
export type Answer = {
  text: string
  thinking: string
  refusal: string
  calls: { id: string; name: string; input: unknown }[]
  stop: string
  usage: { input: number; output: number; cached: number; reasoning: number }
  /** The whole answer, or its stream events, as the client exposes them. */
  raw: unknown
  parsed: unknown
  /** The number of streamed pieces; 0 if the answer was not streamed. */
  pieces: { text: number; arguments: number }
}

type ToolResult = { id: string; name: string; output: string }

/** Keeps the history as its client does, and sends it with every request. */
export type Conversation = {
  sendMessage(content: string | Content[], options?: RequestOptions): Promise<Answer>
  sendToolResults(results: readonly ToolResult[], options?: RequestOptions): Promise<Answer>
}

export type Connection = { baseUrl: string; key: string; model: string; isStreamed: boolean }

/** An error as a client reports it; `kind` is the name of its class. */
export type ReportedError = {
  kind: string
  status: number | undefined
  message: string
  /** The code of the service, where the client exposes it. */
  code?: unknown
}

export type Caller = {
  open(connection: Connection): Conversation
  describeError(error: unknown): ReportedError
}

export const asContent = (content: string | Content[]): Content[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

export const mostTokens = 4096
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const imageUrl = 'https://example.com/pictures/cat.png'
export const pdf = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n%%EOF').toString('base64')
