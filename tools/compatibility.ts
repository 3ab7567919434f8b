// Which client can do what through which upstream. docs/compatibility.md is printed from this table, and the
// acceptance tests run every cell of it.

export const callers = {
  anthropic: { title: '`@anthropic-ai/sdk`', surface: '`client.messages`', format: 'messages' },
  openai_responses: { title: '`openai`', surface: '`client.responses`', format: 'responses' },
  openai_chat: {
    title: '`openai`',
    surface: '`client.chat.completions`',
    format: 'chat_completions',
  },
  ai_anthropic: { title: 'AI SDK', surface: '`@ai-sdk/anthropic`', format: 'messages' },
  ai_responses: { title: 'AI SDK', surface: '`@ai-sdk/openai`', format: 'responses' },
  ai_chat: { title: 'AI SDK', surface: '`@ai-sdk/openai`, `.chat()`', format: 'chat_completions' },
} as const
export type CallerId = keyof typeof callers

export const formats = {
  messages: 'Messages',
  chat_completions: 'Chat Completions',
  responses: 'Responses',
} as const
export type FormatId = keyof typeof formats

export const modes = ['plain', 'streamed'] as const
export type Mode = (typeof modes)[number]

export type Place = { caller: CallerId; format: FormatId; mode: Mode }

/** What happens where a format or a client lacks a feature; a test checks each note. */
export const notes = {
  stop_left_out:
    'Responses has no stop sequences. They are left out, and the answer continues to its end.',
  stop_not_offered:
    'The client has no such parameter, because Responses has no stop sequences. The answer continues to its end.',
  stop_not_named:
    'The answer is cut at the stop sequence, and its finish reason is the ordinary one: Chat Completions does not report stop sequences.',
  thoughts_hidden:
    'Chat Completions cannot request visible thinking, so none is requested from the provider; thinking tokens are counted, and the signature is kept.',
  thoughts_beside:
    'Thinking is in `reasoning_content`, which the client passes on without a type; the caller joins the deltas of a stream.',
  thoughts_not_read:
    'The client ignores thinking in Chat Completions. Thinking tokens are counted.',
  no_signature:
    'Chat Completions has no signatures, so nothing is sent back; earlier thinking is not sent to the provider again.',
  signature_beside:
    'The signature is in `reasoning_signature` of the message and returns when the caller sends the message back unchanged.',
  signature_not_kept:
    'The client drops unknown members of a message, including the signature. The conversation continues without the earlier thinking.',
  text_document_in_words:
    'The format has no text documents: the document is sent as text, below its title.',
  text_document_not_offered:
    'The client accepts only PDF documents in Chat Completions and refuses others itself; plain text is sent as text.',
  refusal_by_reason:
    'The finish reason reports the refusal, and its explanation is the text of the answer.',
  refusal_without_words:
    'Messages reports a refusal by its stop reason, and its explanation has no counterpart here. It arrives as the finish reason of a content filter.',
  whole_arguments: 'An answer that is not streamed has its arguments as a whole.',
  credits_beside:
    'The credit members are in the raw answer, or in the raw frames of a stream, which the client exposes.',
} as const
export type NoteId = keyof typeof notes

type Exception = {
  note: NoteId
  callers?: readonly CallerId[]
  formats?: readonly FormatId[]
  modes?: readonly Mode[]
}
export type Feature = { title: string; exceptions?: readonly Exception[] }

const byResponses: readonly CallerId[] = ['openai_responses', 'ai_responses']
const byAiSdk: readonly CallerId[] = ['ai_anthropic', 'ai_responses', 'ai_chat']

const table = {
  text: { title: 'Text' },
  system: { title: 'System prompt' },
  conversation: { title: 'Conversation of several turns' },
  image_data: { title: 'Image, as data' },
  image_url: { title: 'Image, by URL' },
  pdf: { title: 'PDF document' },
  text_document: {
    title: 'Text document',
    exceptions: [
      { note: 'text_document_not_offered', callers: ['ai_chat'] },
      {
        note: 'text_document_in_words',
        callers: ['anthropic', 'ai_anthropic'],
        formats: ['chat_completions', 'responses'],
      },
      { note: 'text_document_in_words', callers: byResponses, formats: ['chat_completions'] },
      { note: 'text_document_in_words', callers: ['openai_chat'], formats: ['responses'] },
    ],
  },
  tool_call: { title: 'Tool call' },
  parallel_tool_calls: { title: 'Parallel tool calls' },
  streamed_arguments: {
    title: 'Arguments of a tool call, streamed',
    exceptions: [{ note: 'whole_arguments', modes: ['plain'] }],
  },
  tool_result: { title: 'Tool result sent back' },
  tool_loop: { title: 'Tools run by the client’s own loop' },
  tool_choice_auto: { title: 'Tool choice: auto' },
  tool_choice_required: { title: 'Tool choice: required' },
  tool_choice_named: { title: 'Tool choice: a named tool' },
  tool_choice_none: { title: 'Tool choice: none' },
  thinking: {
    title: 'Thinking',
    exceptions: [
      { note: 'thoughts_not_read', callers: ['ai_chat'] },
      { note: 'thoughts_hidden', callers: ['openai_chat'], formats: ['messages', 'responses'] },
      { note: 'thoughts_beside', callers: ['openai_chat'] },
    ],
  },
  signature: {
    title: 'Signed thinking sent back unchanged',
    exceptions: [
      { note: 'no_signature', formats: ['chat_completions'] },
      { note: 'signature_not_kept', callers: ['ai_chat'] },
      { note: 'signature_beside', callers: ['openai_chat'] },
    ],
  },
  sealed_thoughts: {
    title: 'Encrypted thinking sent back unchanged',
    exceptions: [
      { note: 'no_signature', formats: ['chat_completions'] },
      { note: 'signature_not_kept', callers: ['ai_chat'] },
      { note: 'signature_beside', callers: ['openai_chat'] },
    ],
  },
  moved_conversation: {
    title: 'Conversation moved to another provider and back, each with its own thinking',
    exceptions: [
      { note: 'signature_not_kept', callers: ['ai_chat'] },
      { note: 'signature_beside', callers: ['openai_chat'] },
    ],
  },
  stop_sequence: {
    title: 'Stop sequences',
    exceptions: [
      { note: 'stop_not_offered', callers: byResponses },
      { note: 'stop_left_out', formats: ['responses'] },
      { note: 'stop_not_named', formats: ['chat_completions'] },
      { note: 'stop_not_named', callers: ['openai_chat', 'ai_chat'] },
    ],
  },
  max_tokens: { title: 'Length limit, reported as the finish reason' },
  json_schema: { title: 'Answer that follows a JSON schema, parsed' },
  usage: { title: 'Usage with cached and reasoning tokens' },
  refusal: {
    title: 'Refusal',
    exceptions: [
      {
        note: 'refusal_without_words',
        callers: ['openai_responses', 'openai_chat', ...byAiSdk],
        formats: ['messages'],
      },
      {
        note: 'refusal_by_reason',
        callers: ['anthropic'],
        formats: ['chat_completions', 'responses'],
      },
      { note: 'refusal_by_reason', callers: byAiSdk },
    ],
  },
  rejected: { title: 'Error: the provider rejects the request' },
  overloaded: { title: 'Error: the provider is overloaded' },
  unknown_model: { title: 'Error: unknown model' },
  bad_body: { title: 'Error: invalid body' },
  bad_key: { title: 'Error: wrong key' },
  failure_midway: { title: 'Error in the middle of an answer' },
  broken_connection: { title: 'Connection lost in the middle of an answer' },
  credits: {
    title: 'Credit members',
    exceptions: [{ note: 'credits_beside', callers: byAiSdk }],
  },
} as const satisfies Record<string, Feature>

export type FeatureId = keyof typeof table
export const features: Readonly<Record<FeatureId, Feature>> = table
export const featureIds = Object.keys(table) as FeatureId[]

/** What is tested with the previous major of each client too: one of every kind. */
export const featuresOfPrevious: readonly FeatureId[] = [
  'text',
  'system',
  'conversation',
  'image_data',
  'tool_call',
  'parallel_tool_calls',
  'streamed_arguments',
  'tool_result',
  'thinking',
  'max_tokens',
  'json_schema',
  'usage',
  'rejected',
  'unknown_model',
  'bad_body',
  'bad_key',
  'failure_midway',
]

/** The packages of the clients, and the names under which the tests install their previous major. */
export const clientPackages = {
  openai: 'openai-previous',
  '@anthropic-ai/sdk': 'anthropic-sdk-previous',
  ai: 'ai-previous',
  '@ai-sdk/openai': 'ai-sdk-openai-previous',
  '@ai-sdk/anthropic': 'ai-sdk-anthropic-previous',
} as const

/** The note of a cell: that of the first exception that fits; null when the feature simply works. */
export function noteOf(feature: FeatureId, { caller, format, mode }: Place): NoteId | null {
  const fits = (exception: Exception) =>
    (exception.callers?.includes(caller) ?? true) &&
    (exception.formats?.includes(format) ?? true) &&
    (exception.modes?.includes(mode) ?? true)
  return features[feature].exceptions?.find(fits)?.note ?? null
}
