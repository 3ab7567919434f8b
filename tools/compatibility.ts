// Which client can do what through which upstream. docs/compatibility.md is printed from this table, and
// the acceptance tests run every cell of it: what is said here is what was tried.

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

/** What holds where a format or a client has no notion of a feature; a test holds each to its word. */
export const notes = {
  stop_left_out:
    'Responses has no stop sequences. They are left out, and the answer goes on to its end.',
  stop_not_offered:
    'The client has no such parameter, because Responses has no stop sequences. The answer ends by itself.',
  stop_not_named:
    'The answer is cut as asked and its end is told as an ordinary one: Chat Completions does not say that a stop sequence ended it.',
  thoughts_hidden:
    'Chat Completions cannot ask to see thoughts, so the provider is not asked to show them; that it has thought is counted, and its signature is kept.',
  thoughts_beside:
    'Thoughts stand in `reasoning_content`, which the client hands on without knowing it; a stream’s deltas are joined by the caller.',
  thoughts_not_read:
    'The client reads no thoughts in Chat Completions. That the model has thought is counted.',
  no_signature:
    'Chat Completions has no signatures, so there is nothing to send back; thoughts are not sent to the provider again.',
  signature_beside:
    'The signature stands in `reasoning_signature` of the message and comes back with it when the caller sends the message as it got it.',
  signature_not_kept:
    'The client drops what it does not know of a message, the signature with it. The conversation goes on without the earlier thoughts.',
  text_document_in_words:
    'The format has no text documents: the text arrives as text, below its title.',
  text_document_not_offered:
    'The client takes only PDF documents in Chat Completions and refuses others itself; plain text is sent as text.',
  refusal_by_reason:
    'A refusal is told by the reason of the end, and its words are the text of the answer.',
  refusal_without_words:
    'Messages tells a refusal by its stop reason; its explanation has no place here. It arrives as the end by a content filter.',
  failed_response:
    'A Responses stream tells its failure as a response whose status is `failed`, which the client returns.',
  words_in_body:
    'Errors of `/v1/responses` have a flat body. The client has the class and the status of the error; its words are in `responseBody`.',
  whole_arguments: 'An answer that is not streamed has its arguments in one piece.',
  credits_beside:
    'The client hands on the raw answer, or the raw frames of a stream, where the credit members stand.',
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
const wordsInBody = { note: 'words_in_body', callers: ['ai_responses'] } as const
const byAiSdk: readonly CallerId[] = ['ai_anthropic', 'ai_responses', 'ai_chat']

const table = {
  text: { title: 'Text' },
  system: { title: 'System prompt' },
  conversation: { title: 'Conversation of several turns' },
  image_data: { title: 'Image, as data' },
  image_url: { title: 'Image, by address' },
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
    title: 'Arguments of a tool call, piece by piece',
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
    title: 'Signature of thoughts sent back unchanged',
    exceptions: [
      { note: 'no_signature', formats: ['chat_completions'] },
      { note: 'signature_not_kept', callers: ['ai_chat'] },
      { note: 'signature_beside', callers: ['openai_chat'] },
    ],
  },
  sealed_thoughts: {
    title: 'Encrypted thoughts sent back unchanged',
    exceptions: [
      { note: 'no_signature', formats: ['chat_completions'] },
      { note: 'signature_not_kept', callers: ['ai_chat'] },
      { note: 'signature_beside', callers: ['openai_chat'] },
    ],
  },
  moved_conversation: {
    title: 'Conversation moved to another provider and back, with thoughts for each its own',
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
  max_tokens: { title: 'Length limit, told as the reason of the end' },
  json_schema: { title: 'Answer by a JSON schema, parsed' },
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
  rejected: { title: 'Error: the provider refuses the request', exceptions: [wordsInBody] },
  overloaded: { title: 'Error: the provider is overloaded', exceptions: [wordsInBody] },
  unknown_model: { title: 'Error: unknown model', exceptions: [wordsInBody] },
  bad_body: { title: 'Error: a body that makes no sense', exceptions: [wordsInBody] },
  bad_key: { title: 'Error: wrong key' },
  failure_midway: {
    title: 'Error in the middle of an answer',
    exceptions: [
      { note: 'failed_response', callers: ['openai_responses'], modes: ['streamed'] },
      { ...wordsInBody, modes: ['plain'] },
    ],
  },
  broken_connection: {
    title: 'Connection lost in the middle of an answer',
    exceptions: [
      { note: 'failed_response', callers: ['openai_responses'], modes: ['streamed'] },
      { ...wordsInBody, modes: ['plain'] },
    ],
  },
  credits: {
    title: 'Credit members',
    exceptions: [{ note: 'credits_beside', callers: byAiSdk }],
  },
} as const satisfies Record<string, Feature>

export type FeatureId = keyof typeof table
export const features: Readonly<Record<FeatureId, Feature>> = table
export const featureIds = Object.keys(table) as FeatureId[]

/** What is to be said about a cell beyond that it works; the first exception that fits is the one. */
export function noteOf(feature: FeatureId, { caller, format, mode }: Place): NoteId | null {
  const fits = (exception: Exception) =>
    (exception.callers?.includes(caller) ?? true) &&
    (exception.formats?.includes(format) ?? true) &&
    (exception.modes?.includes(mode) ?? true)
  return features[feature].exceptions?.find(fits)?.note ?? null
}
