import { z } from 'zod'

// One way to speak to every client, so that a feature is written once and tried with all of them.

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

/** What a structured answer has to be. */
export const Place = z.object({ name: z.string(), people: z.int(), isCapital: z.boolean() })

export type ToolChoice = 'auto' | 'required' | 'none' | { name: ToolName }

export type Wish = {
  /** Another one than that of the connection. */
  model?: string
  system?: string
  maxTokens?: number
  stop?: string[]
  topP?: number
  hasTools?: boolean
  toolChoice?: ToolChoice
  isThinking?: boolean
  /** Asks for a `Place`, by the client's own helper. */
  isStructured?: boolean
}

/** What a client understood, in common words but for `stop`, which is the client's own. */
export type Said = {
  text: string
  thinking: string
  refusal: string
  calls: { id: string; name: string; input: unknown }[]
  stop: string
  usage: { input: number; output: number; cached: number; reasoning: number }
  /** The whole answer, or the frames of it, as the client hands them on. */
  raw: unknown
  parsed: unknown
  /** In how many pieces it came; 0 where it was not streamed. */
  pieces: { text: number; arguments: number }
}

type ToolResult = { id: string; name: string; output: string }

/** Keeps what was said as its client keeps it and sends it along each time. */
export type Conversation = {
  say(content: string | Content[], wish?: Wish): Promise<Said>
  giveResults(results: readonly ToolResult[], wish?: Wish): Promise<Said>
}

export type Connection = { baseUrl: string; key: string; model: string; isStreamed: boolean }

/** An error as a client tells it: its class, and what can be read from it. */
export type Told = {
  kind: string
  status: number | undefined
  message: string
  /** The body it came in, where the client hands that on. */
  body?: string | undefined
}

export type Caller = {
  open(connection: Connection): Conversation
  explain(error: unknown): Told
}

export const asContent = (content: string | Content[]): Content[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

export const mostTokens = 4096
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const imageUrl = 'https://example.com/pictures/cat.png'
export const pdf = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n%%EOF').toString('base64')
